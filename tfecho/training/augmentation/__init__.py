"""Augmentations by name, for the host or for the device.

```python
import keras
import tfecho
from tfecho.training import augmentation

# On the host, in tf.data: behind an echo each copy is augmented anew.
pipeline = tfecho.Pipeline(
  tf.data.Dataset.range(8),
  decode=lambda i: (tf.fill([32, 32, 3], tf.cast(i, tf.uint8)), i),
  augment=augmentation.get("trivial"),
  batch_size=4,
)

# mixup and cutmix take batches, with labels in one-hot: they stand behind any
# echo, and what is repeated is mixed anew.
mixing = tfecho.Pipeline(
  tf.data.Dataset.range(8),
  decode=lambda i: (tf.zeros([32, 32, 3]), tf.one_hot(i, 8)),
  augment=augmentation.get("trivial"),
  mix=augmentation.get("mixup"),
  batch_size=4,
)

# On the device, in the training step.
model = keras.Sequential([keras.Input((32, 32, 3)), keras.layers.Flatten()])
augment = augmentation.get("trivial", side="device")
model = augmentation.in_train_step(model, augment, seed=1)
```

| name | what it does to an image | source |
|---|---|---|
| none | nothing | |
| crop_flip | pads it, crops it, mirrors it | arXiv 1512.03385 |
| trivial | one operation of any strength | arXiv 2103.10158 |
| rand | two operations of one strength | arXiv 1909.13719 |
| augmix | averages it with three chains of operations | arXiv 1912.02781 |
| auto | two operations that a search found | arXiv 1805.09501 |
| mixup | averages it with another one, and the labels | arXiv 1710.09412 |
| cutmix | shows a part of another one, mixes the labels | arXiv 1905.04899 |

From the top, and up to `augmix`, each costs more than the one before it; see
`python -m experiments.benchmark --suite=augmentation`.

On both sides they compute the same, on batches as on single images, unless the
layers of Keras are asked for. Where Keras 3 has a layer that does what the
paper says, which is so for `mixup` and `cutmix`, the device uses it.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfecho import stages
from tfecho.checks import checked_seed
from tfecho.training.augmentation import keras_layers, methods, mixing
from tfecho.training.augmentation.augmenting import (
  Augmentation,
  Chain,
  Method,
  checked_value_range,
)
from tfecho.training.augmentation.training_step import in_train_step

__all__ = [
  "NAMES",
  "SIDES",
  "Augmentation",
  "chain",
  "get",
  "in_train_step",
  "mapped",
]

SIDES = ("host", "device")

_CHANGES: dict[str, Callable[..., methods.Change]] = {
  "none": methods.none,
  "crop_flip": methods.crop_flip,
  "trivial": methods.trivial,
  "rand": methods.rand,
  "augmix": methods.augmix,
  "auto": methods.auto,
}
_MIXES: dict[str, Callable[..., mixing.Mix]] = {
  "mixup": mixing.mixup,
  "cutmix": mixing.cutmix,
}

NAMES = (*_CHANGES, *_MIXES)

_LAYERS = ("keras", "own")

# What moves pixels, if that, takes images as they are.
_KEEP_VALUES = ("none", "crop_flip")

_logger = logging.getLogger("tfecho")


def get(
  name: str,
  *,
  side: str = "host",
  layers: str | None = None,
  value_range: Sequence[float] = (0, 1),
  **options: Any,
) -> Augmentation:
  """Returns an augmentation.

  >>> from tfecho.training import augmentation
  >>> augment = augmentation.get("auto", policy="cifar10")
  >>> augment(tf.zeros([4, 32, 32, 3], tf.uint8), seed=(1, 2)).dtype
  tf.uint8

  Args:
    name: one of `NAMES`.
    side: "host", for `Pipeline(augment=...)`, or for `Pipeline(mix=...)` where
      it takes batches, or for `mapped`; or "device", for `in_train_step`.
    layers: on the device, "keras" for the layer of Keras, which for `rand` is
      not quite that of the paper (see `keras_layers`); "own" for the operations
      that run on the host, too; None for Keras' where it has one that does what
      the paper says, and ours elsewhere.
    value_range: of images in floating point, (0, 1) or (0, 255). Those in uint8
      always go from 0 to 255.
    **options: those of the method, with defaults as in its paper:
      crop_flip: `padding`, 4, in pixels;
      rand: `magnitude`, 9, from 0 to 10, and `num_ops`, 2;
      augmix: `severity`, 3, from 0.1 to 10, `width`, 3, `depth`, by default
      drawn from 1 to 3, and `alpha`, 1;
      auto: `policy`, "imagenet" or "cifar10";
      mixup: `alpha`, 0.2; cutmix: `alpha`, 1.

  Returns:
    An `Augmentation`.

  Raises:
    ValueError: if an argument is not as described, or "keras" was asked for and
      has no such layer.
  """
  if name not in NAMES:
    raise ValueError(f"`name` must be one of {', '.join(NAMES)}, got {name!r}")
  make = _maker(name, side, layers)
  _check_options(name, make, options)
  made = make(**options)
  wrapped: dict[str, Any] = {"mix" if name in _MIXES else "change": made}
  return Method(
    name,
    side,
    keeps_values=name in _KEEP_VALUES,
    value_range=checked_value_range(value_range),
    **wrapped,
  )


def chain(*augments: Augmentation) -> Augmentation:
  """Returns several augmentations as one; they run in this order.

  >>> from tfecho.training import augmentation
  >>> augment = augmentation.chain(
  ...   augmentation.get("crop_flip"), augmentation.get("trivial")
  ... )
  >>> augment.__name__
  'crop_flip, trivial'

  Args:
    *augments: for the same side.

  Returns:
    An `Augmentation`. Each part of it draws its own random numbers.

  Raises:
    ValueError: if there are none, or if they are for different sides.
  """
  return Chain(*augments)


def mapped(
  augment: Augmentation, *, seed: int | None = None
) -> Callable[[tf.data.Dataset], tf.data.Dataset]:
  """Augments the elements of a dataset, of batches for `mixup` and `cutmix`.

  For what does not go into a `Pipeline`. Each element gets another seed, as in
  `Pipeline`, and the position in the dataset can be saved.

  >>> from tfecho.training import augmentation
  >>> batch = (tf.zeros([8, 4, 4, 3]), tf.one_hot(tf.range(8), 10))
  >>> dataset = tf.data.Dataset.from_tensors(batch).apply(
  ...   augmentation.mapped(augmentation.get("mixup"), seed=1)
  ... )
  >>> [part.shape for part in dataset.element_spec]
  [TensorShape([8, 4, 4, 3]), TensorShape([8, 10])]

  Args:
    augment: for the host.
    seed: makes it reproducible; None for other draws in every run.

  Returns:
    A function to pass to `tf.data.Dataset.apply`.

  Raises:
    ValueError: if `augment` is not for the host.
  """
  if getattr(augment, "side", None) != "host":
    raise ValueError(
      "`augment` must be an augmentation for the host, got"
      f" {getattr(augment, '__name__', augment)!r}"
    )
  return stages.mapped("augment", augment, checked_seed(seed))


def _maker(name: str, side: str, layers: str | None) -> Callable[..., Any]:
  """What makes the method, of ours or of Keras."""
  if side not in SIDES:
    raise ValueError(f"`side` must be one of {', '.join(SIDES)}, got {side!r}")
  if layers not in (None, *_LAYERS):
    raise ValueError(
      f"`layers` must be None or one of {', '.join(_LAYERS)}, got {layers!r}"
    )
  own: Callable[..., Any] = {**_CHANGES, **_MIXES}[name]
  if side == "host":
    if layers == "keras":
      raise ValueError(
        '`layers`="keras" needs `side`="device": in tf.data, the position of a'
        " layer that draws can't be saved"
      )
    return own
  if keras.backend.backend() != "tensorflow":
    raise ValueError(
      '`side`="device" needs the TensorFlow backend of Keras, this is'
      f" {keras.backend.backend()!r}: leave `side` out, to augment in tf.data"
    )
  wants_keras = layers == "keras" or (layers is None and name in _MIXES)
  if wants_keras and keras_layers.has(name):
    return keras_layers.LAYERS[name][1]
  if layers == "keras":
    raise ValueError(
      f'`layers`="keras": Keras {keras.__version__} has no layer for {name}'
      " that draws anew at every step; leave `layers` out for ours"
    )
  if wants_keras:
    _logger.info(
      "tfecho: Keras %s has no layer for %s, so that ours augments",
      keras.__version__,
      name,
    )
  return own


def _check_options(
  name: str, make: Callable[..., Any], options: dict[str, Any]
) -> None:
  known = inspect.signature(make).parameters
  for option, value in options.items():
    if option not in known:
      raise ValueError(
        f"`{option}` is no option of {name}, which has"
        f" {', '.join(known) or 'none'}; got {value!r}"
      )
