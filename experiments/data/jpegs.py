"""Small images as JPEG files, for where decoding is a part of the task."""

import numpy as np
import tensorflow as tf

_QUALITY = 90


def encode(images, size):
  """Returns the files of images, enlarged first.

  Args:
    images: Of shape [count, height, width, 1] with values from 0 to 255.
    size: Height and width of the images in the files, in pixels.

  Returns:
    An array of `bytes`, of shape [count]: JPEG files in colour.
  """
  resized = tf.image.resize(images, (size, size), method="bicubic")
  pixels = tf.cast(tf.clip_by_value(tf.round(resized), 0, 255), tf.uint8)
  return files(tf.image.grayscale_to_rgb(pixels))


def files(images):
  """Returns the files of images in colour.

  Args:
    images: uint8 of shape [count, height, width, 3].

  Returns:
    An array of `bytes`, of shape [count].
  """
  files = [tf.io.encode_jpeg(image, quality=_QUALITY) for image in images]
  return np.array([file.numpy() for file in files], dtype=object)
