"""Operations that move pixels, each on a batch with a strength for each image.

    transforms = geometry.TRANSFORMS["rotate"](degrees, height, width)
    images = geometry.warp(images, transforms, fill=128.0)

A transform says where the pixels of the result come from, as Pillow's
`Image.transform` is told; rotations turn to the left, as `Image.rotate` does.
"""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf


def warp(
  images: tf.Tensor,
  transforms: tf.Tensor,
  *,
  fill: float,
  interpolation: str = "nearest",
) -> tf.Tensor:
  """Moves the pixels of images.

  Args:
    images: [batch, height, width, channels].
    transforms: float32, [batch, 8], of one of the functions here.
    fill: the value of what comes from outside.
    interpolation: "nearest" or "bilinear".

  Returns:
    Images of the same shape.
  """
  # The operation does not know bfloat16 in TensorFlow 2.15.
  is_bfloat16 = images.dtype == tf.bfloat16
  warped = tf.raw_ops.ImageProjectiveTransformV3(
    images=tf.cast(images, tf.float32) if is_bfloat16 else images,
    transforms=transforms,
    output_shape=tf.shape(images)[1:3],
    fill_value=tf.constant(fill, tf.float32),
    interpolation=interpolation.upper(),
    fill_mode="CONSTANT",
  )
  warped.set_shape(images.shape)
  return tf.cast(warped, images.dtype)


def shear_x(
  amount: tf.Tensor, height: tf.Tensor, width: tf.Tensor
) -> tf.Tensor:
  """Moves every row by `amount` further than the one above it."""
  del height, width
  return _transforms(1.0, amount, 0.0, 0.0, 1.0, 0.0)


def shear_y(
  amount: tf.Tensor, height: tf.Tensor, width: tf.Tensor
) -> tf.Tensor:
  """Moves every column by `amount` further than the one left of it."""
  del height, width
  return _transforms(1.0, 0.0, 0.0, amount, 1.0, 0.0)


def translate_x(
  pixels: tf.Tensor, height: tf.Tensor, width: tf.Tensor
) -> tf.Tensor:
  """Moves to the left by so many pixels."""
  del height, width
  return _transforms(1.0, 0.0, pixels, 0.0, 1.0, 0.0)


def translate_y(
  pixels: tf.Tensor, height: tf.Tensor, width: tf.Tensor
) -> tf.Tensor:
  """Moves upwards by so many pixels."""
  del height, width
  return _transforms(1.0, 0.0, 0.0, 0.0, 1.0, pixels)


def rotate(
  degrees: tf.Tensor, height: tf.Tensor, width: tf.Tensor
) -> tf.Tensor:
  """Turns to the left about the middle."""
  angle = degrees * (math.pi / 180.0)
  cos, sin = tf.cos(angle), tf.sin(angle)
  x, y = tf.cast(width, tf.float32) / 2.0, tf.cast(height, tf.float32) / 2.0
  return _transforms(
    cos, -sin, x - cos * x + sin * y, sin, cos, y - sin * x - cos * y
  )


def shift_and_flip(
  right: tf.Tensor, down: tf.Tensor, is_flipped: tf.Tensor, width: tf.Tensor
) -> tf.Tensor:
  """Moves by whole pixels, and mirrors what then is there if asked to."""
  right, down = tf.cast(right, tf.float32), tf.cast(down, tf.float32)
  direction = tf.where(is_flipped, -1.0, 1.0)
  edge = tf.where(is_flipped, tf.cast(width, tf.float32), 0.0)
  return _transforms(direction, 0.0, edge - right, 0.0, 1.0, -down)


TRANSFORMS = {
  function.__name__: function
  for function in (shear_x, shear_y, translate_x, translate_y, rotate)
}


def _transforms(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> tf.Tensor:
  """From (x, y) to (a x + b y + c, d x + e y + f), for each image.

  Pillow means by (x, y) the middle of a pixel, which has halves; TensorFlow
  counts pixels in whole numbers. The offsets are moved accordingly.
  """
  columns = [a, b, c + (a + b - 1.0) / 2.0, d, e, f + (d + e - 1.0) / 2.0]
  size = tf.shape(sum(columns))
  columns = [tf.broadcast_to(column, size) for column in columns]
  return tf.stack([*columns, tf.zeros(size), tf.zeros(size)], axis=1)
