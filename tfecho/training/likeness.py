"""Whether a model can be validated on batches, given what it is trained on."""

from __future__ import annotations

from typing import Any, Optional

import keras
import tensorflow as tf

from tfecho.training import graph

_Sizes = Optional[list[Optional[int]]]


def check(
  validation_data: tf.data.Dataset, data: tf.data.Dataset, model: keras.Model
) -> None:
  """Raises ValueError if batches differ by more than Keras allows.

  Weights may be missing, numbers be of another size, labels have dimensions of
  one. Inputs may differ in dimensions that the model leaves open, and labels
  then, too.

  Args:
    validation_data: pairs (inputs, labels), or triples with weights.
    data: likewise; what the model is trained on.
    model: from these inputs.
  """
  given, wanted = validation_data.element_spec, data.element_spec
  if not _are_alike(given, wanted, model):
    raise ValueError(
      "`validation_data` must give batches like those of `data`, which are"
      f" {wanted}, got {given}"
    )


def _are_alike(given: Any, wanted: Any, model: keras.Model) -> bool:
  try:
    tf.nest.assert_same_structure(given[:2], wanted[:2])
  except (TypeError, ValueError):
    return False
  inputs, labels = (
    list(zip(tf.nest.flatten(given[i]), tf.nest.flatten(wanted[i])))
    for i in (0, 1)
  )
  fixed = _input_sizes(model) if len(inputs) == 1 else None
  is_open = fixed is None or None in fixed[1:]
  return all(
    _kind(a) == _kind(b) and _fit(_sizes(a.shape), _sizes(b.shape), fixed)
    for a, b in inputs
  ) and all(
    _fit(a, b, None if is_open else b)
    for a, b in (map(_label_sizes, pair) for pair in labels)
  )


def _kind(spec: Any) -> str:
  """What Keras casts among."""
  if spec.dtype.is_floating:
    return "floating"
  return "integer" if spec.dtype.is_integer else spec.dtype.name


def _input_sizes(model: keras.Model) -> _Sizes:
  """Those of the only input, or None if they are not known."""
  if not graph.has_graph(model) or len(model.inputs) != 1:
    return None
  return _sizes(tf.TensorShape(model.inputs[0].shape))


def _sizes(shape: tf.TensorShape) -> _Sizes:
  """Those of dimensions, of which the first may be any; None if not known."""
  if shape.rank is None:
    return None
  return [None, *shape.as_list()[1:]] if shape.rank else []


def _label_sizes(spec: Any) -> _Sizes:
  """Without dimensions of one, which losses put in and leave out."""
  sizes = _sizes(spec.shape)
  return sizes and [size for size in sizes if size != 1]


def _fit(
  given: _Sizes,
  wanted: _Sizes,
  fixed: _Sizes,
) -> bool:
  """Whether sizes are the same wherever they are known, and fixed."""
  if given is None or wanted is None:
    return True
  if len(given) != len(wanted):
    return False
  return fixed is None or all(
    a == b or None in (a, b, size) for a, b, size in zip(given, wanted, fixed)
  )
