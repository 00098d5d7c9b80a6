"""Boxes as offsets from default boxes, which is what the network predicts.

    center:  (center - default center) / default size / 0.1
    size:    log(size / default size) / 0.2

The divisors bring both to about the same variance.
"""

import tensorflow as tf

_CENTER_SCALE = 0.1
_SIZE_SCALE = 0.2

# Of a pixel or less: keeps the logarithm of a box without a size finite.
_LEAST_SIZE = 1e-5


def encode(boxes, defaults):
  """Returns boxes as offsets.

  Args:
    boxes: Of shape [..., boxes, 4].
    defaults: The default box of each, of shape [boxes, 4].

  Returns:
    A tensor of shape [..., boxes, 4]: the offsets of the centers, vertical and
    horizontal, and of height and width.
  """
  centers, sizes = _centers_and_sizes(boxes)
  default_centers, default_sizes = _centers_and_sizes(defaults)
  moves = (centers - default_centers) / default_sizes / _CENTER_SCALE
  growth = tf.math.log(sizes / default_sizes) / _SIZE_SCALE
  return tf.concat([moves, growth], axis=-1)


def decode(offsets, defaults):
  """Returns the boxes that `encode` returns these offsets for."""
  default_centers, default_sizes = _centers_and_sizes(defaults)
  moves = offsets[..., :2] * _CENTER_SCALE
  centers = default_centers + moves * default_sizes
  halves = tf.exp(offsets[..., 2:] * _SIZE_SCALE) * default_sizes / 2
  return tf.concat([centers - halves, centers + halves], axis=-1)


def _centers_and_sizes(boxes):
  lower, upper = boxes[..., :2], boxes[..., 2:]
  return (lower + upper) / 2, tf.maximum(upper - lower, _LEAST_SIZE)
