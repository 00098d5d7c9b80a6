"""Augmentations of Keras, called as ours are: with a seed, and without state.

    mix = keras_layers.mixup(alpha=0.2)
    images, labels = mix(images, labels, seed)

Keras' layers draw from a generator that they keep. Its state is set from the
seed at every call, so that nothing has to be saved to go on from some step.

Keras 3 has them, not Keras 2.15. Those that are left out:

- `AugMix` of Keras 3.15 chooses its operations with Python's `random`, while
  the training step is traced: every step would do the same ones, and no seed
  makes that reproducible.
- `RandomCrop` cuts one window out of all images of a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from tfecho.checks import check_number, checked_int
from tfecho.training.augmentation.methods import Change, check_magnitude
from tfecho.training.augmentation.mixing import Mix, Mixed

# Of a magnitude of 10. Its shears are those of the paper then; what rotates,
# moves and recolours has the same factor, of a turn, a side and a range.
_STRONGEST = 0.3


def rand(*, magnitude: float = 9, num_ops: int = 2) -> Change:
  """`keras.layers.RandAugment`, which is not quite that of the paper.

  It chooses the same operations for all images of a batch, computes every
  operation of its list and keeps what was chosen, and rotates by up to 108
  degrees where the paper has 30.
  """
  check_magnitude(magnitude)
  num_ops = checked_int("num_ops", num_ops, at_least=1)
  layer = keras.layers.RandAugment(
    value_range=(0, 255),
    num_ops=num_ops,
    factor=_STRONGEST * magnitude / 10,
    seed=0,
    dtype="float32",
  )

  def change(images: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    _set_state(layer, seed)
    return layer(images, training=True)

  return change


def mixup(*, alpha: float = 0.2) -> Mix:
  """`keras.layers.MixUp`."""
  check_number("alpha", alpha, above=0)
  return _mix(keras.layers.MixUp(alpha=alpha, seed=0, dtype="float32"))


def cutmix(*, alpha: float = 1.0) -> Mix:
  """`keras.layers.CutMix`, which takes an `alpha` of at most 1.

  Its rectangles lie inside of the image; those of the paper may go beyond an
  edge, so that less of them shows.
  """
  check_number("alpha", alpha, above=0)
  if alpha > 1:
    raise ValueError(
      "`alpha` must be at most 1 for Keras' layer; with `layers='own'` it may"
      f" be more, got {alpha!r}"
    )
  return _mix(keras.layers.CutMix((alpha, alpha), seed=0, dtype="float32"))


LAYERS: dict[str, tuple[str, Callable[..., Any]]] = {
  "rand": ("RandAugment", rand),
  "mixup": ("MixUp", mixup),
  "cutmix": ("CutMix", cutmix),
}


def has(name: str) -> bool:
  """Whether this Keras has a layer for an augmentation."""
  return name in LAYERS and hasattr(keras.layers, LAYERS[name][0])


def _mix(layer: keras.layers.Layer) -> Mix:
  def mix(images: tf.Tensor, labels: tf.Tensor, seed: tf.Tensor) -> Mixed:
    _set_state(layer, seed)
    mixed = layer({"images": images, "labels": labels}, training=True)
    values = mixed["images"]
    if images.dtype == tf.uint8:
      values = tf.round(values)
    return tf.cast(values, images.dtype), tf.cast(mixed["labels"], labels.dtype)

  return mix


def _set_state(layer: keras.layers.Layer, seed: tf.Tensor) -> None:
  layer.generator.state.assign(tf.cast(seed, "uint32"))
