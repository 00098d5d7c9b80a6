"""Random numbers for every image of a batch, all of them from one seed.

    choice, sign = draws.uniform(images, seed, 2)
    index = draws.index(choice, 14)

One draw for all: each costs as much as a small operation on an image.
"""

from __future__ import annotations

import tensorflow as tf


def fold_in(seed: tf.Tensor, number: int | tf.Tensor) -> tf.Tensor:
  """Returns another seed, made of one and a number."""
  return tf.random.experimental.stateless_fold_in(seed, number)


def uniform(
  images: tf.Tensor, seed: tf.Tensor, count: int
) -> list[tf.Tensor]:
  """Returns `count` vectors of numbers in [0, 1), one for each image."""
  values = tf.random.stateless_uniform([count, tf.shape(images)[0]], seed)
  return tf.unstack(values)


def index(draw: tf.Tensor, count: int) -> tf.Tensor:
  """Makes whole numbers below `count`, all alike likely, of uniform ones."""
  # A product with a number just below 1 may be rounded up.
  return tf.minimum(tf.cast(draw * count, tf.int32), count - 1)


def sign(draw: tf.Tensor) -> tf.Tensor:
  """Makes -1 and 1, alike likely, of uniform numbers."""
  return tf.where(draw < 0.5, -1.0, 1.0)


def dirichlet(
  images: tf.Tensor, seed: tf.Tensor, count: int, alpha: float
) -> tf.Tensor:
  """Returns weights that add up to 1 for each image: [batch, count]."""
  shape = [tf.shape(images)[0], count]
  # Of small alphas, most draws are too small for a float32.
  gammas = tf.random.stateless_gamma(
    shape, seed, tf.constant(alpha, tf.float64), dtype=tf.float64
  )
  gammas = tf.maximum(gammas, 1e-300)
  weights = gammas / tf.reduce_sum(gammas, axis=1, keepdims=True)
  return tf.cast(weights, tf.float32)


def beta(images: tf.Tensor, seed: tf.Tensor, alpha: float) -> tf.Tensor:
  """Returns shares between 0 and 1, symmetric, of shape [batch]."""
  return dirichlet(images, seed, 2, alpha)[:, 0]
