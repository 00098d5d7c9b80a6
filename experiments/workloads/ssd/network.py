"""The network of a detector: a residual one with outputs at several scales."""

from __future__ import annotations

from typing import NamedTuple

import keras

from experiments.workloads import resnet


class Extra(NamedTuple):
  """Two convolutions that make a feature map smaller: 1x1, then 3x3.

  Attributes:
    inner: Channels between the two.
    outer: Channels of the result.
    stride: Of the second. With 2 the map is halved; with 1 it loses its border.
  """

  inner: int
  outer: int
  stride: int


SSD300_EXTRAS = (
  Extra(256, 512, 2),
  Extra(256, 512, 2),
  Extra(128, 256, 2),
  Extra(128, 256, 1),
  Extra(128, 256, 1),
)


def detector(
  image_size,
  levels,
  *,
  classes,
  blocks=(3, 4, 6),
  width=64,
  extras=SSD300_EXTRAS,
  momentum=0.9,
):
  """Builds a detector; the defaults are those of SSD300 on ResNet-34.

  The residual network ends with its third stage, which doesn't halve the image,
  so that the first feature map has an eighth of its height and width.

  Args:
    image_size: Height and width of an image, in pixels.
    levels: A `boxes.Level` for each feature map.
    classes: Number of classes, without the background.
    blocks: Number of basic blocks in each of the three stages.
    width: Channels of the first stage; each has twice those of the last.
    extras: What each feature map but the first is made of the last one by.
    momentum: Of the running means in batch normalization.

  Returns:
    A `keras.Model` from images, uint8 of shape [batch, image_size, image_size,
    3], to float32 of shape [batch, boxes, 4 + 1 + classes]: for each default
    box the offsets, and the logits of background and classes.

  Raises:
    ValueError: If `levels` are not as many, or as large, as the feature maps.
  """
  images = keras.Input((image_size, image_size, 3), dtype="uint8")
  maps = [
    resnet.basic_trunk(
      images, blocks, strides=(1, 2, 1), width=width, momentum=momentum
    )
  ]
  for extra in extras:
    maps.append(_shrink(maps[-1], extra))
  _check(levels, maps)
  outputs = [_head(x, level, classes) for x, level in zip(maps, levels)]
  # float32 also under a mixed-precision policy: the loss needs the range.
  outputs = keras.layers.Concatenate(axis=1, dtype="float32")(outputs)
  return keras.Model(images, outputs, name=f"ssd{image_size}")


def _check(levels, maps):
  sizes = [x.shape[1] for x in maps]
  positions = [level.positions for level in levels]
  if positions != sizes:
    raise ValueError(
      f"`levels` must have the sizes {sizes} of the feature maps, got"
      f" {positions}"
    )


def _shrink(x, extra):
  x = _convolve(x, extra.inner, kernel_size=1, activation="relu")
  return _convolve(
    x,
    extra.outer,
    strides=extra.stride,
    padding="same" if extra.stride > 1 else "valid",
    activation="relu",
  )


def _head(x, level, classes):
  boxes = len(level.shapes)
  offsets = _convolve(x, boxes * 4)
  logits = _convolve(x, boxes * (1 + classes))
  return keras.layers.Concatenate(axis=2)(
    [
      keras.layers.Reshape((-1, 4))(offsets),
      keras.layers.Reshape((-1, 1 + classes))(logits),
    ]
  )


def _convolve(x, channels, *, kernel_size=3, padding="same", **options):
  return keras.layers.Conv2D(
    channels, kernel_size, padding=padding, **options
  )(x)
