"""Windows: parts of an image, which may reach beyond it, and what is in them.

A window is a box in the coordinates of the image.
"""

import tensorflow as tf

from experiments.workloads.ssd import objects as columns

WHOLE = (0.0, 0.0, 1.0, 1.0)

_GREY = (124, 116, 104)  # the mean of photographs


def resample(image, window, size):
  """Returns what is in a window, grey where that is outside of the image.

  Args:
    image: uint8 of shape [height, width, 3].
    window: A box, in the coordinates of the image.
    size: Height and width of the new image, in pixels.

  Returns:
    A uint8 tensor of shape [size, size, 3]; smoothed where it gets smaller.
  """
  window = tf.convert_to_tensor(window)
  start, sides = window[:2], window[2:] - window[:2]
  pixels = tf.cast(tf.shape(image)[:2], tf.float32)
  scale = size / (sides * pixels)
  resampled = tf.raw_ops.ScaleAndTranslate(
    images=image[tf.newaxis],
    size=[size, size],
    scale=scale,
    translation=-start * pixels * scale,
    kernel_type="triangle",
  )[0]
  resampled = tf.where(_inside(start, sides, size), resampled, _GREY)
  return to_uint8(tf.ensure_shape(resampled, [size, size, 3]))


def within(boxes, window):
  """Returns boxes in the coordinates of a window."""
  start, end = window[:2], window[2:]
  corners = (tf.reshape(boxes, [-1, 2, 2]) - start) / (end - start)
  return tf.reshape(corners, [-1, 4])


def outward(window, canvas):
  """Returns a window of a canvas in the coordinates of the image."""
  start, sides = canvas[:2], canvas[2:] - canvas[:2]
  return tf.concat([start + window[:2] * sides, start + window[2:] * sides], 0)


def show(objects, window):
  """Returns the objects that are in a window, in its coordinates."""
  boxes = within(columns.boxes(objects), window)
  seen = has_center(boxes, tf.constant(WHOLE))
  present = columns.classes(objects) > 0
  return columns.with_boxes(
    objects, tf.clip_by_value(boxes, 0, 1), seen & present
  )


def has_center(boxes, window):
  """Returns whether the centers of boxes are inside of a window."""
  centers = (boxes[..., :2] + boxes[..., 2:]) / 2
  inside = (centers > window[..., :2]) & (centers < window[..., 2:])
  return tf.reduce_all(inside, axis=-1)


def to_uint8(pixels):
  """Returns pixels from 0 to 255, rounded and cut off."""
  return tf.cast(tf.clip_by_value(tf.round(pixels), 0, 255), tf.uint8)


def _inside(start, sides, size):
  centers = (tf.range(size, dtype=tf.float32) + 0.5) / size
  positions = start + centers[:, tf.newaxis] * sides
  inside = (positions >= 0) & (positions <= 1)
  return inside[:, tf.newaxis, :1] & inside[tf.newaxis, :, 1:]
