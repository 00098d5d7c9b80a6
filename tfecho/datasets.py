"""What every transformation here is made of: datasets with one input.

A transformation that hands its elements on does not need to know what they are.
It works on their flat tensors, and takes the structure over from its input:

    flat = flat_components(dataset)       # elements: tuples of plain tensors
    ...
    UnaryDataset(dataset, variant)        # elements: those of `dataset` again

Taking elements apart in a Python function instead would lose what has no flat
form of its own: one-tuples, ragged tensors of rank 0, named tuples.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

# Tensors of these types are as large as what they refer to.
_UNSIZED = (tf.string, tf.variant, tf.resource)


class UnaryDataset(tf.data.Dataset):
  """A dataset over `variant` with the structure and options of its input."""

  def __init__(self, input_dataset: tf.data.Dataset, variant: tf.Tensor):
    self._input_dataset = input_dataset
    super().__init__(variant)

  def _inputs(self) -> list[tf.data.Dataset]:
    return [self._input_dataset]

  @property
  def element_spec(self) -> Any:
    """The structure of the elements, which is that of the input."""
    return self._input_dataset.element_spec


class EchoedDataset(UnaryDataset):
  """A dataset that may hold elements of its input more than once."""


def is_echoed(dataset: tf.data.Dataset) -> bool:
  """Whether an echo stands in `dataset`, if it was not loaded from a file."""
  return isinstance(dataset, EchoedDataset) or any(
    is_echoed(upstream) for upstream in dataset._inputs()
  )


def flat_components(dataset: tf.data.Dataset) -> tf.data.Dataset:
  """Returns `dataset` with each element as the tuple of its flat tensors."""
  structure = flat_structure(dataset)
  specs = zip(structure["output_shapes"], structure["output_types"])
  return tf.data.experimental.from_variant(
    tf.data.experimental.to_variant(dataset),
    tuple(tf.TensorSpec(shape, dtype) for shape, dtype in specs),
  )


def flat_structure(dataset: tf.data.Dataset) -> dict[str, Any]:
  """Returns the attributes that describe the elements to a dataset op."""
  return dataset._flat_structure


def element_bytes(element_spec: Any) -> int | None:
  """Returns how many bytes an element takes; None if its spec can't tell."""
  size = 0
  for spec in tf.nest.flatten(element_spec):
    if not isinstance(spec, tf.TensorSpec) or spec.dtype in _UNSIZED:
      return None
    if not spec.shape.is_fully_defined():
      return None
    size += spec.shape.num_elements() * spec.dtype.size
  return size


def op_metadata(name: str | None) -> bytes:
  """Returns what tells a dataset op its `name`, for errors and profiles."""
  from tensorflow.core.framework import dataset_metadata_pb2

  metadata = dataset_metadata_pb2.Metadata()
  if name is not None:
    metadata.name = name.encode()
  return metadata.SerializeToString()
