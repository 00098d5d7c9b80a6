"""An augmentation as it is called: any images in, the same kind out.

    augment = Method("rand", "host", change=methods.rand())
    image, label = augment(image, label, seed=seed)
    augment = Chain(crop_flip, augment)

Inside, a method sees batches of float32 from 0 to 255.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfecho.checks import checked_stateless_seed
from tfecho.training.augmentation import draws
from tfecho.training.augmentation.methods import Change
from tfecho.training.augmentation.mixing import Mix

_MAX = 255.0


class Augmentation:
  """Called with an image, or a batch of them, and a seed.

  What comes behind the images - labels, weights - is handed on, or mixed where
  the method says so. The same seed gives the same result.

  >>> from tfecho.training import augmentation
  >>> augment = augmentation.get("rand", magnitude=5)
  >>> image, label = augment(tf.zeros([32, 32, 3]), tf.constant(7), seed=(1, 2))
  >>> image.shape, int(label)
  (TensorShape([32, 32, 3]), 7)
  >>> augment.side, augment.on_batches
  ('host', False)

  Attributes:
    side: "host" or "device": where it is to run.
    on_batches: whether it mixes the examples of a batch, and so needs one.
  """

  def __init__(self, name: str, side: str, *, on_batches: bool):
    """Says what it is; what it does is up to a subclass."""
    self.__name__ = name
    self.side = side
    self.on_batches = on_batches

  def __call__(self, images: Any, *rest: Any, seed: Any) -> Any:
    """Augments.

    Args:
      images: uint8, 0 to 255, or floating point in the value range that was
        given; [height, width, channels] or [batch, height, width, channels],
        one channel or three.
      *rest: what belongs to them, the labels first. To be mixed, labels are
        one-hot, in floating point.
      seed: shape [2], two whole numbers.

    Returns:
      Images, of the same shape and dtype, and what came with them.

    Raises:
      ValueError: if an argument is not as described.
    """
    raise NotImplementedError


class Method(Augmentation):
  """A single one."""

  def __init__(
    self,
    name: str,
    side: str,
    *,
    change: Change = lambda images, seed: images,
    mix: Mix | None = None,
    keeps_values: bool = False,
    value_range: tuple[float, float] = (0.0, 1.0),
  ):
    """Wraps a method.

    Args:
      name: of the method.
      side: "host" or "device".
      change: from images and a seed to images.
      mix: instead of it, from images, labels and a seed to both.
      keeps_values: whether `change` takes images of any kind, since it only
        moves pixels.
      value_range: of images in floating point; (0, 1) or (0, 255).
    """
    super().__init__(name, side, on_batches=mix is not None)
    self._change = change
    self._mix = mix
    self._keeps_values = keeps_values
    self._scale = _MAX / value_range[1]

  # AutoGraph would take all of this apart, and find nothing to convert.
  @tf.autograph.experimental.do_not_convert
  def __call__(self, images: Any, *rest: Any, seed: Any) -> Any:
    """Augments, as said of `Augmentation`."""
    images = _checked_images(images, batched=self.on_batches)
    seed = checked_stateless_seed(seed)
    if self._mix is not None:
      labels, rest = _checked_labels(self.__name__, rest)
      images, labels = self._mix(images, labels, seed)
      return (images, labels, *rest)
    images = self._changed(images, seed)
    return (images, *rest) if rest else images

  def _changed(self, images: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    change = self._change if self._keeps_values else self._in_levels
    if images.shape.rank == 4:
      return change(images, seed)
    return change(images[None], seed)[0]

  def _in_levels(self, images: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """Changes images as float32 from 0 to 255, whatever they are."""
    values = tf.cast(images, tf.float32)
    if images.dtype == tf.uint8:
      # Rounds: the cast cuts off.
      return tf.cast(self._change(values, seed) + 0.5, tf.uint8)
    values = self._change(values * self._scale, seed) / self._scale
    return tf.cast(values, images.dtype)


class Chain(Augmentation):
  """Several augmentations for one side, each with random numbers of its own."""

  def __init__(self, *augments: Augmentation):
    """Puts them one behind the other, in the order in which they run.

    Args:
      *augments: for the same side.

    Raises:
      ValueError: if there are none, or if they are for different sides.
    """
    sides = [getattr(augment, "side", None) for augment in augments]
    if len(set(sides)) != 1 or sides[0] is None:
      raise ValueError(
        "`augments` must be augmentations for one side, got"
        f" {[getattr(x, '__name__', x) for x in augments]} for {sides}"
      )
    super().__init__(
      ", ".join(augment.__name__ for augment in augments),
      augments[0].side,
      on_batches=any(augment.on_batches for augment in augments),
    )
    self._augments = augments

  @tf.autograph.experimental.do_not_convert
  def __call__(self, images: Any, *rest: Any, seed: Any) -> Any:
    """Augments, as said of `Augmentation`."""
    seed = checked_stateless_seed(seed)
    examples = (images, *rest)
    for position, augment in enumerate(self._augments):
      result = augment(*examples, seed=draws.fold_in(seed, position))
      examples = result if rest else (result,)
    return examples if rest else examples[0]


def checked_value_range(value_range: Any) -> tuple[float, float]:
  """Returns the range of floating-point images.

  Raises:
    ValueError: if it is neither (0, 1) nor (0, 255).
  """
  if isinstance(value_range, Sequence) and tuple(value_range) in (
    (0, 1),
    (0, 255),
  ):
    low, high = value_range
    return low, high
  raise ValueError(
    f"`value_range` must be (0, 1) or (0, 255), got {value_range!r}"
  )


def _checked_images(images: Any, *, batched: bool) -> tf.Tensor:
  ranks = (4,) if batched else (3, 4)
  if isinstance(images, dict):
    raise ValueError(
      "`images` must be a tensor, got a dict: make it a tuple, images first"
    )
  images = tf.convert_to_tensor(images)
  if images.dtype != tf.uint8 and not images.dtype.is_floating:
    raise ValueError(
      "`images` must be uint8 or in floating point, got"
      f" {images.dtype.name}"
    )
  if images.shape.rank not in ranks or images.shape[-1] not in (1, 3):
    expected = " or ".join(
      str(["batch", "height", "width", "channels"][-rank:]).replace("'", "")
      for rank in ranks
    )
    raise ValueError(
      f"`images` must have the shape {expected} with 1 or 3 channels, got"
      f" {images.shape}"
    )
  return images


def _checked_labels(
  name: str, rest: tuple[Any, ...]
) -> tuple[tf.Tensor, tuple[Any, ...]]:
  if not rest:
    raise ValueError(f"`labels` are missing, which {name} mixes as well")
  labels = tf.convert_to_tensor(rest[0])
  if labels.shape.rank != 2 or not labels.dtype.is_floating:
    raise ValueError(
      f"`labels` must be one-hot in floating point for {name}, [batch,"
      f" classes], as `tf.one_hot` makes them, got {labels.dtype.name} of shape"
      f" {labels.shape}"
    )
  return labels, rest[1:]
