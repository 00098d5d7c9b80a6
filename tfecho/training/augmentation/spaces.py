"""What the papers choose from: operations, and how strong each may be.

    index, fraction, sign = ...  # one of each for every image of the batch
    images = spaces.RAND.apply(images, index, fraction, sign)

Images are float32 from 0 to 255. A fraction of 0 is the weakest, 1 the
strongest form of an operation, and every paper's levels are evenly spaced
between them.

Sources, by their authors' code where the paper leaves something open:

- AutoAugment, arXiv 1805.09501, table 6, for `AUTO`;
- RandAugment, arXiv 1909.13719, which takes over these ranges, for `RAND`;
- TrivialAugment, arXiv 2103.10158, "wide" of table 1, for `TRIVIAL`;
- AugMix, arXiv 1912.02781, for `AUGMIX`: those of AutoAugment that do not
  occur in ImageNet-C.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import NamedTuple

import tensorflow as tf

from tfecho.training.augmentation import colour, geometry

# What is a whole number on paper may be a little less as a float32.
_ROUNDING = 1e-3


class Range(NamedTuple):
  """Strengths of an operation.

  Attributes:
    weakest: at a fraction of 0.
    strongest: at a fraction of 1.
    signed: whether it goes in both directions.
    whole: whether it is cut off to whole numbers, counted from `weakest`.
    share: whether it is in shares of the image's size.
  """

  weakest: float
  strongest: float
  signed: bool = False
  whole: bool = False
  share: bool = False

  def strength(
    self, fraction: tf.Tensor, sign: tf.Tensor, size: tf.Tensor
  ) -> tf.Tensor:
    """What an operation is told, for every image.

    Args:
      fraction: float32, [batch].
      sign: float32, [batch], -1 or 1.
      size: height or width of the images, in pixels.

    Returns:
      float32, [batch].
    """
    change = (self.strongest - self.weakest) * fraction
    if self.share:
      change *= tf.cast(size, tf.float32)
    if self.whole:
      change = tf.sign(change) * tf.floor(tf.abs(change) + _ROUNDING)
    value = self.weakest + change
    return value * sign if self.signed else value


@dataclasses.dataclass(frozen=True, eq=False)
class Space:
  """Operations to choose from.

  Attributes:
    ranges: by name of the operation; None for one without a strength.
    fill: the level of what comes from outside of the image, 0 to 255.
    interpolation: of what moves pixels by fractions.
  """

  ranges: Mapping[str, Range | None]
  fill: float
  interpolation: str = "nearest"

  def __len__(self) -> int:
    return len(self.ranges)

  def position(self, name: str) -> int:
    """Returns the index of an operation."""
    return list(self.ranges).index(name)

  def apply(
    self,
    images: tf.Tensor,
    index: tf.Tensor,
    fraction: tf.Tensor,
    sign: tf.Tensor,
  ) -> tf.Tensor:
    """Does one operation on each image.

    Only those that were chosen run: of a single image one branch, of a batch
    every operation on the images that it is to be done on.

    Args:
      images: float32, [batch, height, width, channels], 0 to 255.
      index: int32, [batch], of the operation for each image.
      fraction: float32, [batch], how strong.
      sign: float32, [batch], -1 or 1: in which direction.

    Returns:
      Images of the same shape.
    """
    changed = self._traced_apply(images, index, fraction, sign)
    changed.set_shape(images.shape)
    return changed

  @functools.cached_property
  def _traced_apply(self) -> Callable[..., tf.Tensor]:
    """Traced once: a chain of it would take seconds to trace otherwise."""
    return tf.function(self._apply, autograph=False)

  def _apply(
    self,
    images: tf.Tensor,
    index: tf.Tensor,
    fraction: tf.Tensor,
    sign: tf.Tensor,
  ) -> tf.Tensor:
    if images.shape[0] != 1:
      return self._apply_by_operation(images, index, fraction, sign)
    branches = [
      lambda name=name: self.run(name, images, fraction, sign)
      for name in self.ranges
    ]
    return tf.switch_case(index[0], branches)

  def _apply_by_operation(
    self,
    images: tf.Tensor,
    index: tf.Tensor,
    fraction: tf.Tensor,
    sign: tf.Tensor,
  ) -> tf.Tensor:
    places = tf.range(tf.shape(images)[0])
    parts = [
      tf.dynamic_partition(values, index, len(self))
      for values in (places, images, fraction, sign)
    ]
    changed = [
      self.run(name, *part) for name, *part in zip(self.ranges, *parts[1:])
    ]
    return tf.dynamic_stitch(parts[0], changed)

  def run(
    self,
    name: str,
    images: tf.Tensor,
    fraction: tf.Tensor,
    sign: tf.Tensor,
  ) -> tf.Tensor:
    """Does one operation on all images."""
    height, width = tf.unstack(tf.shape(images)[1:3])
    limits = self.ranges[name] or Range(0.0, 0.0)
    size = width if name.endswith("_x") else height
    strength = limits.strength(fraction, sign, size)
    if name in colour.OPERATIONS:
      return colour.OPERATIONS[name](images, strength)
    return geometry.warp(
      images,
      geometry.TRANSFORMS[name](strength, height, width),
      fill=self.fill,
      interpolation=self.interpolation,
    )


def _both(names: str, limits: Range) -> dict[str, Range]:
  return {f"{names}_x": limits, f"{names}_y": limits}


def _enhancing(limits: Range) -> dict[str, Range]:
  names = ("color", "contrast", "brightness", "sharpness")
  return dict.fromkeys(names, limits)


# Translations go up to 150 pixels of the 331 that the paper's images have.
_OF_AUTOAUGMENT: dict[str, Range | None] = {
  "auto_contrast": None,
  "equalize": None,
  "rotate": Range(0.0, 30.0, signed=True, whole=True),
  "solarize": Range(256.0, 0.0, whole=True),
  "posterize": Range(8.0, 4.0, whole=True),
  **_enhancing(Range(0.1, 1.9)),
  **_both("shear", Range(0.0, 0.3, signed=True)),
  **_both(
    "translate", Range(0.0, 150 / 331, signed=True, whole=True, share=True)
  ),
}

AUTO = Space({"identity": None, "invert": None, **_OF_AUTOAUGMENT}, fill=128.0)

RAND = Space({"identity": None, **_OF_AUTOAUGMENT}, fill=128.0)

TRIVIAL = Space(
  {
    "identity": None,
    "auto_contrast": None,
    "equalize": None,
    "rotate": Range(0.0, 135.0, signed=True, whole=True),
    "solarize": Range(256.0, 0.0, whole=True),
    "posterize": Range(8.0, 2.0, whole=True),
    **_enhancing(Range(0.01, 2.0)),
    **_both("shear", Range(0.0, 0.99, signed=True)),
    **_both("translate", Range(0.0, 32.0, signed=True, whole=True)),
  },
  fill=0.0,
)

# "identity" stands for the end of a chain that is shorter than others.
AUGMIX = Space(
  {
    "identity": None,
    "auto_contrast": None,
    "equalize": None,
    "posterize": Range(4.0, 0.0, whole=True),
    "rotate": Range(0.0, 30.0, signed=True, whole=True),
    "solarize": Range(256.0, 0.0, whole=True),
    **_both("shear", Range(0.0, 0.3, signed=True)),
    **_both(
      "translate", Range(0.0, 1 / 3, signed=True, whole=True, share=True)
    ),
  },
  fill=0.0,
  interpolation="bilinear",
)
