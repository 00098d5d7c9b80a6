"""The loss of a detector: what is in the default boxes, and where exactly."""

import keras
import tensorflow as tf

from experiments.workloads.ssd.encoding import encode
from experiments.workloads.ssd.matching import match


class MultiBoxLoss(keras.losses.Loss):
  """Cross entropy of the classes and smooth L1 distance of the offsets.

  Both are sums over the default boxes that stand for an object, divided by the
  number of those. Nearly all of the others are easily seen to be background:
  only the hardest of them count, those with the largest cross entropy, three
  for each that stands for an object. An image without objects has no loss.

  Labels are objects as packed by `objects.pack`, of shape [batch, rows,
  columns]. Outputs are those of `network.detector`.
  """

  def __init__(self, defaults, *, negatives=3, name="multi_box"):
    """Remembers the default boxes.

    Args:
      defaults: The default boxes, of shape [boxes, 4].
      negatives: Number of boxes of background for each that is not.
      name: Of the loss.
    """
    super().__init__(name=name)
    self._defaults = defaults
    self._negatives = negatives

  def call(self, objects, outputs):
    """Returns the loss of each image, of shape [batch]."""
    boxes, classes = match(objects, self._defaults)
    positive = tf.cast(classes > 0, tf.float32)
    distance = _smooth_l1(outputs[..., :4] - encode(boxes, self._defaults))
    cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(
      classes, outputs[..., 4:]
    )
    count = tf.reduce_sum(positive, axis=1)
    total = tf.reduce_sum(positive * (distance + cross_entropy), axis=1)
    total += _sum_of_largest(
      (1 - positive) * cross_entropy, self._negatives * count
    )
    return tf.math.divide_no_nan(total, count)


def _smooth_l1(differences):
  """Returns half the square up to 1, and what is as steep as that beyond."""
  size = tf.abs(differences)
  values = tf.where(size < 1, size**2 / 2, size - 0.5)
  return tf.reduce_sum(values, axis=-1)


def _sum_of_largest(values, counts):
  """Returns for each row the sum of as many of its values, largest first."""
  ordered = tf.sort(values, axis=1, direction="DESCENDING")
  taken = tf.sequence_mask(counts, values.shape[1], dtype=values.dtype)
  return tf.reduce_sum(taken * ordered, axis=1)
