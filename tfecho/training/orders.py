"""Tensors of a converted model, and how they are ordered beside the old ones.

    image = Tensor(keras.Input((3, 8, 8)), ORIGINAL, "image")
    image = reordered(image, LAST)          # [batch, 8, 8, 3]

Where a model in channels_first has a tensor, the converted model has the same
one in one of three orders. Layers of Keras go from one order to another, so
that the model can be saved and runs on every backend.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import keras
import numpy as np

from tfecho.training.layers import dtype_name


class Order(NamedTuple):
  """How a tensor of the new model is ordered, seen from the old one.

  Attributes:
    kind: "original"; "channels_last": axis 1 of the old tensor is the last
      axis; or "flattened": all axes of an image, (channels, height, width),
      are one, which goes by height, width, channels.
    shape: Only of "flattened": that of the old image, without the batch.
  """

  kind: str
  shape: tuple[int, ...] = ()

  def indices(self) -> np.ndarray:
    """Of "flattened": where each element of the axis is in the old one."""
    old = np.arange(math.prod(self.shape)).reshape(self.shape)
    return np.moveaxis(old, 0, -1).ravel()


ORIGINAL = Order("original")
LAST = Order("channels_last")


class Tensor(NamedTuple):
  """A symbolic tensor of the new model.

  Attributes:
    value: The tensor, as Keras knows it.
    order: Its order, seen from the old model.
    name: Unique in the model; names the layers that reorder it.
  """

  value: Any
  order: Order
  name: str

  @property
  def rank(self) -> int:
    """Number of axes, the batch included."""
    return len(self.value.shape)

  @property
  def old_shape(self) -> tuple[int | None, ...]:
    """Shape of the tensor in the old model, the batch included."""
    shape = tuple(self.value.shape)
    return channels_first(shape) if self.order == LAST else shape


def channels_last(shape: tuple) -> tuple:
  """(batch, channels, ...) as (batch, ..., channels)."""
  return (shape[0], *shape[2:], *shape[1:2])


def channels_first(shape: tuple) -> tuple:
  """(batch, ..., channels) as (batch, channels, ...)."""
  return (shape[0], *shape[-1:], *shape[1:-1])


def moved_axis(axis: int, rank: int) -> int:
  """Where an axis of a channels_first tensor is once channels are last."""
  return channels_last(tuple(range(rank))).index(axis % rank)


def flattened(image: Tensor) -> Order | None:
  """The order of an image in `LAST` once it is flattened; None if unknown."""
  shape = tuple(size for size in image.old_shape[1:] if size is not None)
  if image.order != LAST or len(shape) < image.rank - 1:
    return None
  order = Order("flattened", shape)
  is_the_same = np.all(np.diff(order.indices()) == 1)
  return ORIGINAL if is_the_same else order


def reordered(tensor: Tensor, order: Order) -> Tensor:
  """Returns the tensor in another order.

  A tensor without positions, such as [batch, channels], is in `LAST` as it is.
  """
  if order == tensor.order or (order == LAST and tensor.rank < 3):
    return tensor
  if ORIGINAL not in (order, tensor.order):
    return reordered(reordered(tensor, ORIGINAL), order)
  value = tensor.value
  for step, (layer, argument) in enumerate(_steps(tensor, order)):
    name = f"{tensor.name}_to_{order.kind}" + (f"_{step}" if step else "")
    value = layer(argument, name=name, dtype=_policy(value))(value)
  return Tensor(value, order, tensor.name)


def _steps(tensor: Tensor, order: Order) -> list[tuple[type, tuple[int, ...]]]:
  """Layers, each with its argument, that bring a tensor into an order."""
  permute, reshape = keras.layers.Permute, keras.layers.Reshape
  if order == LAST:
    return [(permute, _permutation(channels_last, tensor.rank))]
  if tensor.order == LAST:
    return [(permute, _permutation(channels_first, tensor.rank))]
  if tensor.order.kind == "flattened":
    shape, move = tensor.order.shape, channels_first
    first = (*shape[1:], shape[0])
  else:
    first = shape = order.shape
    move = channels_last
  flat = (math.prod(shape),)
  return [
    (reshape, first),
    (permute, _permutation(move, len(shape) + 1)),
    (reshape, flat),
  ]


def _permutation(move: Any, rank: int) -> tuple[int, ...]:
  return move(tuple(range(rank)))[1:]


def _policy(value: Any) -> str | None:
  """A policy under which a layer leaves the dtype of a tensor alone.

  Layers cast floating-point inputs to what they compute in, by default that of
  the global policy; other inputs they do not cast.
  """
  dtype = dtype_name(value)
  return dtype if "float" in dtype else None
