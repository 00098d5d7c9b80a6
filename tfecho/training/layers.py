"""What Keras does not tell about layers and tensors, or not in one way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras


def all_layers(layer: keras.layers.Layer) -> list[keras.layers.Layer]:
  """Returns a layer or model and all layers inside, innermost first.

  A layer is inside if an attribute holds it, or a collection in an attribute:
  so nested models, wrapped layers, and the parts of a layer of one's own are
  found, and each is returned once.

  >>> from tfecho.training.layers import all_layers
  >>> wrapped = keras.layers.TimeDistributed(
  ...   keras.layers.Dense(2, name="inner"), name="outer"
  ... )
  >>> [layer.name for layer in all_layers(wrapped)]
  ['inner', 'outer']
  """
  found: dict[int, keras.layers.Layer] = {}
  seen: set[int] = set()

  def visit(layer: keras.layers.Layer) -> None:
    if id(layer) in seen:
      return
    seen.add(id(layer))
    for inner in _held(list(vars(layer).values())):
      visit(inner)
    found[id(layer)] = layer

  visit(layer)
  return list(found.values())


def _held(value: Any) -> Iterator[keras.layers.Layer]:
  """The layers in a value; metrics, which are layers in Keras 2, are none."""
  if isinstance(value, keras.layers.Layer):
    if not isinstance(value, keras.metrics.Metric):
      yield value
  elif isinstance(value, dict):
    yield from _held(list(value.values()))
  elif isinstance(value, (list, tuple, set)):
    for item in value:
      yield from _held(item)


def whole_number(value: Any) -> int:
  """An int, or what a variable holds: a mirrored one is no int to Python."""
  return int(value.numpy() if hasattr(value, "numpy") else value)


def dtype_name(tensor: Any) -> str:
  """A dtype is a string in Keras 3, and TensorFlow's in Keras 2."""
  return getattr(tensor.dtype, "name", tensor.dtype)
