"""Batch normalization in one TensorFlow op, as Keras 2 computes it.

Keras 3 computes it in a dozen ops, and in float32 whatever the policy says. In
a residual network on a CPU that is two fifths of a training step, which mixed
precision can't shorten; in one op, 16-bit images are read and written as such
and only summed up in float32.
"""

import keras
import tensorflow as tf


class FusedBatchNormalization(keras.layers.BatchNormalization):
  """Normalizes images in channels_last; for Keras 3 and TensorFlow.

  The running variance is that of the population, as in Keras 2: larger than
  that of the batch by n / (n - 1) for n pixels.
  """

  def call(self, inputs, training=None, mask=None):
    if mask is not None or self.axis not in (-1, len(inputs.shape) - 1):
      raise ValueError(
        f"layer {self.name!r} takes images in channels_last only, without masks"
      )
    statistics = {}
    if not training:
      statistics = {
        "mean": _float32(self.moving_mean),
        "variance": _float32(self.moving_variance),
      }
    outputs, mean, variance = tf.compat.v1.nn.fused_batch_norm(
      inputs,
      scale=_float32(self.gamma),
      offset=_float32(self.beta),
      epsilon=self.epsilon,
      is_training=bool(training),
      **statistics,
    )
    if training:
      self._update(self.moving_mean, mean)
      self._update(self.moving_variance, variance)
    return outputs

  def _update(self, moving, value):
    moving.assign(moving * self.momentum + value * (1 - self.momentum))


def with_fused_normalization(model):
  """Returns a copy of a model, newly initialized, that normalizes in one op."""

  def clone(layer):
    is_fused = keras.__version__.startswith("2.")
    if isinstance(layer, keras.layers.BatchNormalization) and not is_fused:
      return FusedBatchNormalization.from_config(layer.get_config())
    return type(layer).from_config(layer.get_config())

  return keras.models.clone_model(model, clone_function=clone)


def _float32(variable):
  return tf.cast(tf.convert_to_tensor(variable), tf.float32)
