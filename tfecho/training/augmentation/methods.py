"""What is drawn for each image, and done with it, by the name of the method.

    change = methods.rand(magnitude=9, num_ops=2)
    images = change(images, seed)  # float32, [batch, h, w, c], 0 to 255

A method is made with the options that its paper has. All images of a batch are
drawn for by themselves, and all of it from one seed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tfecho.checks import check_number, checked_int
from tfecho.training.augmentation import draws, geometry, spaces
from tfecho.training.augmentation.policies import POLICIES

# From a batch of images and a seed to a batch of images.
Change = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]

# Levels of AutoAugment, RandAugment and AugMix are tenths of a range.
_LEVELS = 10

# TrivialAugment's strengths: 0 to 30.
_STRENGTHS = 31


def none() -> Change:
  """Leaves images as they are."""
  return lambda images, seed: images


def crop_flip(*, padding: int = 4) -> Change:
  """Pads with zeros, crops to the size there was, mirrors every other image.

  Source: K. He et al., "Deep Residual Learning for Image Recognition", arXiv
  1512.03385, section 4.2.
  """
  padding = checked_int("padding", padding, at_least=0)

  def change(images: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    right, down, flip = draws.uniform(images, seed, 3)
    right, down = (
      draws.index(draw, 2 * padding + 1) - padding for draw in (right, down)
    )
    if images.shape[0] == 1:
      return _shift_and_flip_one(
        images, padding - right[0], padding - down[0], flip[0] < 0.5, padding
      )
    transforms = geometry.shift_and_flip(
      right, down, flip < 0.5, tf.shape(images)[2]
    )
    return geometry.warp(images, transforms, fill=0.0)

  return change


def trivial() -> Change:
  """One operation, of a strength drawn for each image; nothing to tune.

  Source: S. Mueller, F. Hutter, "TrivialAugment: Tuning-free Yet
  State-of-the-Art Data Augmentation", arXiv 2103.10158.
  """
  space = spaces.TRIVIAL

  def change(images: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    choice, strength, sign = draws.uniform(images, seed, 3)
    fraction = draws.index(strength, _STRENGTHS) / (_STRENGTHS - 1)
    return space.apply(
      images,
      draws.index(choice, len(space)),
      tf.cast(fraction, tf.float32),
      draws.sign(sign),
    )

  return change


def rand(*, magnitude: float = 9, num_ops: int = 2) -> Change:
  """`num_ops` operations drawn for each image, all of one magnitude.

  Source: E. Cubuk, B. Zoph, J. Shlens, Q. Le, "RandAugment: Practical automated
  data augmentation with a reduced search space", arXiv 1909.13719. The defaults
  are those of its ResNet-50 on ImageNet.
  """
  check_magnitude(magnitude)
  num_ops = checked_int("num_ops", num_ops, at_least=1)
  space = spaces.RAND

  def change(images: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    drawn = draws.uniform(images, seed, 2 * num_ops)
    fraction = tf.fill([tf.shape(images)[0]], magnitude / _LEVELS)
    for choice, sign in zip(drawn[::2], drawn[1::2]):
      index = draws.index(choice, len(space))
      images = space.apply(images, index, fraction, draws.sign(sign))
    return images

  return change


def auto(*, policy: str = "imagenet") -> Change:
  """One of the 25 pairs of operations of a policy that was searched for.

  Source: see `policies`.
  """
  if policy not in POLICIES:
    raise ValueError(
      f"`policy` must be one of {', '.join(POLICIES)}, got {policy!r}"
    )
  space = spaces.AUTO
  parts = POLICIES[policy]
  indices, probabilities, levels = (
    np.array([[get(step) for step in part] for part in parts], dtype)
    for get, dtype in (
      (lambda step: space.position(step[0]), np.int32),
      (lambda step: step[1], np.float32),
      (lambda step: step[2] / _LEVELS, np.float32),
    )
  )

  def change(images: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    choice, *drawn = draws.uniform(images, seed, 5)
    part = draws.index(choice, len(parts))
    for step, (chance, sign) in enumerate(zip(drawn[:2], drawn[2:])):
      is_done = chance < tf.gather(probabilities[:, step], part)
      index = tf.gather(indices[:, step], part)
      images = space.apply(
        images,
        tf.where(is_done, index, space.position("identity")),
        tf.gather(levels[:, step], part),
        draws.sign(sign),
      )
    return images

  return change


def augmix(
  *,
  severity: float = 3,
  width: int = 3,
  depth: int | None = None,
  alpha: float = 1.0,
) -> Change:
  """A mix of the image with several chains of operations on it.

  `depth` operations in each of `width` chains, by default one to three, of
  strengths up to `severity`; weights of the mix are drawn with `alpha`.

  Source: D. Hendrycks, N. Mu et al., "AugMix: A Simple Data Processing Method
  to Improve Robustness and Uncertainty", arXiv 1912.02781. Only the images; its
  loss compares predictions for several of them.
  """
  check_magnitude(severity, "severity", at_least=0.1)
  width = checked_int("width", width, at_least=1)
  if depth is not None:
    depth = checked_int("depth", depth, at_least=1)
  check_number("alpha", alpha, above=0)
  space = spaces.AUGMIX
  longest = depth or 3

  def change(images: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    weights = draws.dirichlet(images, draws.fold_in(seed, 1), width, alpha)
    share = draws.beta(images, draws.fold_in(seed, 2), alpha)
    mixed = tf.zeros_like(images)
    for chain in range(width):
      changed = _chain(images, draws.fold_in(seed, 3 + chain))
      mixed += weights[:, chain, None, None, None] * changed
    share = share[:, None, None, None]
    return (1.0 - share) * images + share * mixed

  def _chain(images: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    length, *drawn = draws.uniform(images, seed, 1 + 3 * longest)
    last = draws.index(length, longest) if depth is None else longest - 1
    steps = zip(drawn[::3], drawn[1::3], drawn[2::3])
    for step, (choice, strength, sign) in enumerate(steps):
      # All but "identity", which ends shorter chains.
      index = 1 + draws.index(choice, len(space) - 1)
      level = 0.1 + (severity - 0.1) * strength
      images = space.apply(
        images,
        tf.where(step <= last, index, space.position("identity")),
        level / _LEVELS,
        draws.sign(sign),
      )
    return images

  return change


def _shift_and_flip_one(
  image: tf.Tensor,
  left: tf.Tensor,
  top: tf.Tensor,
  is_flipped: tf.Tensor,
  padding: int,
) -> tf.Tensor:
  """Crops a batch of one: a slice is faster than moving single pixels."""
  sides = [padding, padding]
  padded = tf.pad(image, [[0, 0], sides, sides, [0, 0]])
  crop = tf.slice(padded, tf.stack([0, top, left, 0]), tf.shape(image))
  crop.set_shape(image.shape)
  return tf.cond(is_flipped, lambda: crop[:, :, ::-1], lambda: crop)


def check_magnitude(
  value: Any, argument: str = "magnitude", at_least: float = 0
) -> None:
  """Raises ValueError if `value` is not on the papers' scale up to 10."""
  check_number(argument, value)
  if not at_least <= value <= _LEVELS:
    raise ValueError(
      f"`{argument}` must be from {at_least} to {_LEVELS}, got {value!r}"
    )
