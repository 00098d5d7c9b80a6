"""The kinds of elements that tf.data has, and how to compare them.

  dataset = STRUCTURES["ragged, of rank 2"]()   # a few different elements
  elements = plain_elements(dataset)            # of plain Python values
"""

import collections
import dataclasses

import attr
import numpy as np
import tensorflow as tf

Point = collections.namedtuple("Point", ["x", "y"])

UNSIGNED = (tf.uint8, tf.uint16, tf.uint32, tf.uint64)
OTHER_DTYPES = (tf.bool, tf.int8, tf.float16, tf.bfloat16, tf.complex64)


class Segment(tf.experimental.ExtensionType):
  """A type of elements that TensorFlow does not know by itself."""

  start: tf.Tensor
  points: tf.RaggedTensor


@dataclasses.dataclass
class Labelled:
  """A dataclass in the form that tf.data takes apart; its label is static."""

  value: tf.Tensor
  label: str

  def __tf_flatten__(self):
    return (self.label,), (self.value,)

  @classmethod
  def __tf_unflatten__(cls, metadata, components):
    return cls(value=components[0], label=metadata[0])


def mapped(function):
  """Returns a maker of a dataset of function(1), function(2), function(3)."""
  return lambda: tf.data.Dataset.range(1, 4).map(function)


def sliced(*args, **kwargs):
  """Returns a maker of a dataset of the slices of a ragged constant."""
  return lambda: tf.data.Dataset.from_tensor_slices(
    tf.ragged.constant(*args, **kwargs)
  )


def of_attrs_class():
  """A dataset of objects of a class made by `attrs`."""
  pair = attr.make_class("Pair", ["left", "right"])
  return tf.data.Dataset.range(1, 4).map(lambda i: pair(i, -i))


def of_rank_zero():
  """Ragged elements of one dimension, which are ragged in nothing."""
  return sliced([[1, 2], [3], []])()


STRUCTURES = {
  "scalar": mapped(lambda i: i),
  "vector": mapped(lambda i: tf.stack([i, -i])),
  "no values": mapped(lambda i: (i, tf.zeros([0, 2]))),
  "tuple": mapped(lambda i: (i, tf.as_string(i))),
  "one-tuple": mapped(lambda i: (i,)),
  "one-tuple in a one-tuple": mapped(lambda i: ((i,),)),
  "empty tuple in a tuple": mapped(lambda i: (i, ())),
  "nested dict": mapped(
    lambda i: {"z": i, "a": {"c": tf.cast(i, tf.float32), "b": (i, (-i,))}}
  ),
  "ordered dict": mapped(lambda i: collections.OrderedDict(b=i, a=-i)),
  "named tuple": mapped(lambda i: Point(i, {"y": -i})),
  "attrs class": of_attrs_class,
  "dataclass": mapped(lambda i: Labelled(i, "static")),
  "extension type": mapped(
    lambda i: Segment(i, tf.ragged.range(tf.stack([i, 2])))
  ),
  "string": mapped(tf.as_string),
  "unsigned types": mapped(lambda i: tuple(tf.cast(i, t) for t in UNSIGNED)),
  "other types": mapped(lambda i: tuple(tf.cast(i, t) for t in OTHER_DTYPES)),
  "sparse": mapped(lambda i: tf.SparseTensor([[i]], tf.stack([-i]), [5])),
  "ragged, of rank 0": of_rank_zero,
  "ragged, of rank 1": sliced([[[1], [2, 3]], [], [[4]]]),
  "ragged, of rank 2": sliced([[[[1], []], [[2]]], [[[3]]], []]),
  "ragged, uniform inside": sliced([[[1, 2]], [], [[3, 4]]], ragged_rank=1),
  "tensor array": mapped(
    lambda i: tf.TensorArray(tf.int64, 2, element_shape=[]).unstack([i, -i])
  ),
  "optional": mapped(lambda i: tf.experimental.Optional.from_value((i, -i))),
  "optional, without a value": mapped(
    lambda i: (i, tf.experimental.Optional.empty(tf.TensorSpec([])))
  ),
  "none": mapped(lambda i: (None, i)),
  "dataset": mapped(lambda i: {"inner": tf.data.Dataset.range(i)}),
  "unknown rank": mapped(
    lambda i: tf.reshape(i, tf.ones(tf.stack([i]), tf.int64))
  ),
  "unknown dimension": mapped(lambda i: tf.fill([i], i)),
}


def plain_elements(dataset):
  """Returns the elements of `dataset` as Python values, in a list."""
  return [plain(element) for element in dataset]


def plain(element):
  """Returns `element` as Python values that tell it from any other."""
  leaves = tf.nest.flatten(element)
  return type(element).__name__, [_plain_leaf(leaf) for leaf in leaves]


def _plain_leaf(value):
  if value is None:
    return None
  if isinstance(value, tf.data.Dataset):
    return plain_elements(value)
  if isinstance(value, tf.experimental.Optional):
    return [plain(value.get_value())] if value.has_value() else []
  if isinstance(value, tf.TensorArray):
    return _plain_leaf(value.stack())
  if isinstance(value, tf.Tensor):
    values = np.asarray(value.numpy()).tolist()
    return value.dtype.name, value.shape.as_list(), values
  tensors = tf.nest.flatten(value, expand_composites=True)
  return type(value).__name__, [_plain_leaf(tensor) for tensor in tensors]
