"""Augmentations that mix every image of a batch, and its label, with another.

    change = mixing.mixup(alpha=0.2)
    images, labels = change(images, labels, seed)

Images keep their dtype; labels are one-hot, in floating point.
"""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from tfecho.checks import check_number
from tfecho.training.augmentation import draws

Mixed = tuple[tf.Tensor, tf.Tensor]

# From images, labels and a seed to images and labels.
Mix = Callable[[tf.Tensor, tf.Tensor, tf.Tensor], Mixed]


def mixup(*, alpha: float = 0.2) -> Mix:
  """Averages of two images, with weights from Beta(alpha, alpha).

  Source: H. Zhang, M. Cisse, Y. Dauphin, D. Lopez-Paz, "mixup: Beyond Empirical
  Risk Minimization", arXiv 1710.09412.
  """
  check_number("alpha", alpha, above=0)

  def mix(images: tf.Tensor, labels: tf.Tensor, seed: tf.Tensor) -> Mixed:
    weight = draws.beta(images, draws.fold_in(seed, 0), alpha)
    order = _order(images, seed)
    values = tf.cast(images, tf.float32)
    mixed = _average(values, tf.gather(values, order), weight)
    return _like(mixed, images), _mix_labels(labels, order, weight)

  return mix


def cutmix(*, alpha: float = 1.0) -> Mix:
  """Images with a rectangle of another one, of an area from Beta.

  Source: S. Yun et al., "CutMix: Regularization Strategy to Train Strong
  Classifiers with Localizable Features", arXiv 1905.04899.
  """
  check_number("alpha", alpha, above=0)

  def mix(images: tf.Tensor, labels: tf.Tensor, seed: tf.Tensor) -> Mixed:
    kept = draws.beta(images, draws.fold_in(seed, 0), alpha)
    side = tf.sqrt(1.0 - kept)
    middles = draws.uniform(images, draws.fold_in(seed, 2), 2)
    height, width = tf.unstack(tf.shape(images)[1:3])
    rows = _is_between(height, middles[0], side)[:, :, None]
    columns = _is_between(width, middles[1], side)[:, None, :]
    is_cut = rows & columns
    order = _order(images, seed)
    mixed = tf.where(is_cut[..., None], tf.gather(images, order), images)
    # Counted, since a rectangle may go beyond the edges.
    cut = tf.reduce_mean(tf.cast(is_cut, tf.float32), axis=(1, 2))
    return mixed, _mix_labels(labels, order, 1.0 - cut)

  return mix


def _order(images: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
  [keys] = draws.uniform(images, draws.fold_in(seed, 1), 1)
  return tf.argsort(keys)


def _mix_labels(
  labels: tf.Tensor, order: tf.Tensor, weight: tf.Tensor
) -> tf.Tensor:
  weight = tf.cast(weight, labels.dtype)
  return _average(labels, tf.gather(labels, order), weight)


def _average(one: tf.Tensor, other: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
  ones = [1] * (one.shape.rank - 1)
  weight = tf.reshape(weight, [-1, *ones])
  return weight * one + (1 - weight) * other


def _is_between(
  length: tf.Tensor, middle: tf.Tensor, side: tf.Tensor
) -> tf.Tensor:
  """Which of the rows, or columns, are inside of a rectangle; [batch, length].

  Args:
    length: how many there are.
    middle: of the rectangle, in shares of them, [batch].
    side: of the rectangle, likewise.
  """
  pixels = tf.cast(length, tf.float32)
  places = (tf.range(pixels) + 0.5) / pixels
  return tf.abs(places[None] - middle[:, None]) < side[:, None] / 2.0


def _like(values: tf.Tensor, images: tf.Tensor) -> tf.Tensor:
  if images.dtype == tf.uint8:
    values = tf.round(values)
  return tf.cast(values, images.dtype)
