"""Operations on colours, each on a batch of images with a strength for each.

    images = colour.OPERATIONS["contrast"](images, strengths)

Images are float32, [batch, height, width, channels], with values from 0 to 255
and one channel or three; strengths are float32, [batch].

They compute what Pillow's `ImageOps` and `ImageEnhance` do, which the papers
used, without rounding to whole levels: within one level of it. Plain arithmetic
is faster than a table of 256 results: gathering from that takes TensorFlow
several times as long (BUILD_NOTES.md).
"""

from __future__ import annotations

import tensorflow as tf

_MAX = 255.0
_LEVELS = 256

# ITU-R 601-2, as in Pillow's conversion to grey.
_LUMA = (0.299, 0.587, 0.114)

# Pillow's filter SMOOTH: the mean of a pixel, five times, and its neighbours.
_CENTRE_WEIGHT = 5
_SMOOTH_WEIGHT = 8 + _CENTRE_WEIGHT


def identity(images: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
  """Does nothing."""
  return tf.identity(images)


def invert(images: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
  """Makes a negative."""
  return _MAX - images


def auto_contrast(images: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
  """Stretches the values of every channel to the whole range."""
  low = tf.reduce_min(images, axis=(1, 2), keepdims=True)
  high = tf.reduce_max(images, axis=(1, 2), keepdims=True)
  is_flat = high <= low
  scale = tf.where(is_flat, 1.0, _MAX / (high - low))
  return (images - low) * scale + tf.where(is_flat, low, 0.0)


def equalize(images: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
  """Makes all levels of a channel about as frequent."""
  channels = images.shape[-1]
  shape = tf.shape(images)
  levels = tf.cast(tf.clip_by_value(images, 0.0, _MAX), tf.int32)
  # Every channel has bins of its own, in one row of them per image.
  bins = tf.reshape(
    levels + _LEVELS * tf.range(channels),
    [shape[0], shape[1] * shape[2] * channels],
  )
  counts = tf.raw_ops.DenseBincount(
    input=bins, size=channels * _LEVELS, weights=tf.constant([], tf.int32)
  )
  counts = tf.reshape(counts, [-1, channels, _LEVELS])
  highest = tf.reduce_max(levels, axis=(1, 2))
  tables = tf.reshape(_equalizing(counts, highest), [-1, channels * _LEVELS])
  return tf.reshape(tf.gather(tables, bins, batch_dims=1), shape)


def _equalizing(counts: tf.Tensor, highest: tf.Tensor) -> tf.Tensor:
  """The new value of each level, [batch, channels, 256].

  In whole numbers, as Pillow computes it: a level gets the number of pixels
  that are darker, in steps of a 255th of all but the brightest ones.
  """
  most = tf.gather(counts, highest, batch_dims=2)
  step = ((tf.reduce_sum(counts, axis=-1) - most) // (_LEVELS - 1))[..., None]
  darker = tf.cumsum(counts, axis=-1, exclusive=True)
  equalized = (step // 2 + darker) // tf.maximum(step, 1)
  unchanged = tf.range(_LEVELS)
  table = tf.where(step > 0, tf.minimum(equalized, _LEVELS - 1), unchanged)
  return tf.cast(table, tf.float32)


def posterize(images: tf.Tensor, bits: tf.Tensor) -> tf.Tensor:
  """Keeps the highest `bits` of the eight that a level has."""
  step = tf.pow(2.0, 8.0 - _per_image(bits))
  return tf.floor(images / step) * step


def solarize(images: tf.Tensor, threshold: tf.Tensor) -> tf.Tensor:
  """Inverts what is not below `threshold`, from 0 to 256."""
  # Not `tf.where`, which is slower.
  is_bright = tf.cast(images >= _per_image(threshold), tf.float32)
  return images + is_bright * (_MAX - 2.0 * images)


def brightness(images: tf.Tensor, factor: tf.Tensor) -> tf.Tensor:
  """Multiplies by `factor`: 0 is black, 1 the image."""
  return tf.clip_by_value(images * _per_image(factor), 0.0, _MAX)


def contrast(images: tf.Tensor, factor: tf.Tensor) -> tf.Tensor:
  """Moves away from the mean grey: 0 is grey, 1 the image."""
  mean = tf.reduce_mean(_grey(images), axis=(1, 2, 3), keepdims=True)
  return _blend(tf.floor(mean + 0.5), images, factor)


def color(images: tf.Tensor, factor: tf.Tensor) -> tf.Tensor:
  """Moves away from black and white: 0 has no colours, 1 is the image."""
  return _blend(_grey(images), images, factor)


def sharpness(images: tf.Tensor, factor: tf.Tensor) -> tf.Tensor:
  """Moves away from the smoothed image: 0 is smooth, 1 the image."""
  inner = images[:, 1:-1, 1:-1]
  rows = images[:, :-2] + images[:, 1:-1] + images[:, 2:]
  box = rows[:, :, :-2] + rows[:, :, 1:-1] + rows[:, :, 2:]
  smooth = (box + (_CENTRE_WEIGHT - 1) * inner) / _SMOOTH_WEIGHT
  change = (1.0 - _per_image(factor)) * (smooth - inner)
  # Pillow's filter leaves the pixels at the edge as they are.
  change = tf.pad(change, [[0, 0], [1, 1], [1, 1], [0, 0]])
  return tf.clip_by_value(images + change, 0.0, _MAX)


OPERATIONS = {
  function.__name__: function
  for function in (
    identity,
    invert,
    auto_contrast,
    equalize,
    posterize,
    solarize,
    brightness,
    contrast,
    color,
    sharpness,
  )
}


def _blend(
  degenerate: tf.Tensor, images: tf.Tensor, factor: tf.Tensor
) -> tf.Tensor:
  blended = degenerate + _per_image(factor) * (images - degenerate)
  return tf.clip_by_value(blended, 0.0, _MAX)


def _grey(images: tf.Tensor) -> tf.Tensor:
  if images.shape[-1] == 1:
    return images
  return tf.tensordot(images, tf.constant(_LUMA)[:, None], axes=1)


def _per_image(values: tf.Tensor) -> tf.Tensor:
  return values[:, None, None, None]
