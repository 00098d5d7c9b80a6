"""The state of an iterator, taken apart and changed, in a test.

  state = taken_apart(iterator)
  state["Iterator::Root::Echo"]["left"] = 7
  put_back(another_iterator, state)

This is what a checkpoint of an iterator holds, without the file around it.
"""

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import dataset_pb2, tensor_pb2, types_pb2

SEPARATOR = "@@"


def taken_apart(iterator):
  """Returns {name of an iterator: {key: value}}, for all iterators in one."""
  serialized = tf.raw_ops.SerializeIterator(
    resource_handle=iterator._iterator_resource
  )
  proto = tensor_pb2.TensorProto()
  proto.ParseFromString(tf.io.serialize_tensor(serialized).numpy())
  return dict(
    _named_values(tensor_pb2.VariantTensorDataProto.FromString(part))
    for part in _parts(proto.tensor_content, len(serialized))
  )


def put_back(iterator, state):
  """Restores `iterator` from what `taken_apart` returns."""
  proto = tensor_pb2.TensorProto(dtype=types_pb2.DT_VARIANT)
  proto.tensor_shape.dim.add(size=len(state))
  for name, values in state.items():
    proto.variant_val.add(
      type_name="tensorflow::Iterator",
      metadata=SEPARATOR.join([name, *values]).encode(),
      tensors=[_tensor_proto(value) for value in values.values()],
    )
  tf.raw_ops.DeserializeIterator(
    resource_handle=iterator._iterator_resource,
    serialized=tf.io.parse_tensor(proto.SerializeToString(), tf.variant),
  )


def _tensor_proto(value):
  if isinstance(value, (int, list)):
    value = np.asarray(value, np.int64)
  return tf.make_tensor_proto(value.numpy() if tf.is_tensor(value) else value)


def _parts(content, count):
  """Returns what lies one behind the other, behind the list of its lengths."""
  lengths, start = [], 0
  for _ in range(count):
    length, start = _varint(content, start)
    lengths.append(length)
  parts = []
  for length in lengths:
    parts.append(content[start : start + length])
    start += length
  return parts


def _varint(content, start):
  """Returns the number at `start`, in groups of seven bits, and its end."""
  number = shift = 0
  while True:
    byte = content[start]
    number |= (byte & 127) << shift
    start, shift = start + 1, shift + 7
    if byte < 128:
      return number, start


def _named_values(state):
  name, *keys = state.metadata.decode().split(SEPARATOR)
  return name, dict(zip(keys, _uncompressed(state.tensors[0])))


def _uncompressed(proto):
  """Returns the tensors of which TensorFlow has made one."""
  element = dataset_pb2.CompressedElement()
  element.ParseFromString(proto.variant_val[0].metadata)
  components = element.component_metadata
  return tf.raw_ops.UncompressElement(
    compressed=tf.io.parse_tensor(proto.SerializeToString(), tf.variant),
    output_types=[tf.as_dtype(c.dtype) for c in components],
    output_shapes=[tf.TensorShape(c.tensor_shape) for c in components],
  )
