"""What all image classification has in common: loss, metric, augmentation.

Labels are the numbers of the classes, outputs are logits.
"""

import keras
import tensorflow as tf

from experiments.workloads.workload import Workload


def classification(**fields):
  """Returns a `Workload` with top-1 accuracy as its metric.

  Args:
    **fields: The other fields of the workload.
  """
  return Workload(
    loss=_cross_entropy,
    metric=keras.metrics.SparseCategoricalAccuracy,
    metric_name="validation accuracy",
    maximize=True,
    **fields,
  )


def reader(images, labels):
  """Returns a `read` that looks a record up in arrays."""
  return lambda key: (tf.gather(images, key), tf.gather(labels, key))


def crop_and_flip(padding):
  """Returns an `augment`: a crop of the padded image, then maybe its mirror.

  Args:
    padding: Pixels added on every side before the crop, which is as large as
      the image was.
  """
  crop = pad_and_crop(padding)

  def augment(image, label, seed):
    crop_seed, flip_seed = tf.unstack(tf.random.split(seed))
    image, label = crop(image, label, crop_seed)
    return tf.image.stateless_random_flip_left_right(image, flip_seed), label

  return augment


def pad_and_crop(padding):
  """Returns `crop_and_flip` without the mirror, which digits do not survive."""
  paddings = [[padding, padding], [padding, padding], [0, 0]]

  def augment(image, label, seed):
    padded = tf.pad(image, paddings)
    return tf.image.stateless_random_crop(padded, image.shape, seed), label

  return augment


def momentum(learning_rate, *, weight_decay=1e-4):
  """Returns the optimizer that residual networks are trained with.

  The papers add 1e-4 times a weight to its gradient. A momentum of 0.9 makes
  that ten times as much, which is what is subtracted here. Biases and the
  parameters of batch normalization are left alone.

  Args:
    learning_rate: A number or a schedule.
    weight_decay: Times a weight, what is added to its gradient.
  """
  optimizer = keras.optimizers.SGD(
    learning_rate, momentum=0.9, nesterov=True, weight_decay=10 * weight_decay
  )
  optimizer.exclude_from_weight_decay(var_names=["bias", "beta", "gamma"])
  return optimizer


def _cross_entropy():
  return keras.losses.SparseCategoricalCrossentropy(from_logits=True)
