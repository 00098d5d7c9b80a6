"""Records of TFRecord files, wherever these lie.

    source = tfecho.remote.records(["s3://bucket/1.tfrecord", ...])
    pipeline = tfecho.Pipeline(source, decode=parse, batch_size=256)

A remote file is fetched by one request and split by a stateless function, so
that a position is saved as the name of the file and the number of the record.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfecho.checks import checked_int
from tfecho.remote import fetching, reading

_COMPRESSIONS = (None, "GZIP", "ZLIB")
_ANY_HEADER = 47  # For zlib: that of gzip or of zlib, whichever is there.


def records(
  names: Sequence[str | os.PathLike],
  *,
  read: Callable = reading.read_file,
  compression_type: str | None = None,
  cycle_length: int = 2,
) -> tf.data.Dataset:
  """Makes a dataset of the records of TFRecord files.

  >>> with tf.io.TFRecordWriter("ram://records/1.tfrecord") as writer:
  ...   writer.write(b"one")
  ...   writer.write(b"two")
  >>> data = tfecho.remote.records(["ram://records/1.tfrecord"])
  >>> list(data.as_numpy_iterator())
  [b'one', b'two']

  If TensorFlow can read all of the files by itself, it does. Otherwise each is
  in memory as a whole while it is being used, several times while it is split:
  keep shards at 100 MB or so. One that was being used when a position was saved
  is fetched again after a restore. Save positions with plain checkpoints: with
  symbolic ones, TensorFlow's parallel interleave can hang at the restore.

  To shuffle shards, shuffle `names`; to share them among workers, give each a
  part of them, such as `names[index::num_workers]`.

  Args:
    names: of the files.
    read: what fetches a remote file, made by `reader`.
    compression_type: None, "GZIP" or "ZLIB".
    cycle_length: files to take records from in turn, and to fetch at once.

  Returns:
    A `tf.data.Dataset` of scalar strings, of unknown cardinality: if you know
    it, add `tf.data.experimental.assert_cardinality`.

  Raises:
    ValueError: if an argument is not as described.
    ImportError: if the extra `remote` is needed and not installed.
  """
  paths = _checked_names(names)
  cycle_length = checked_int("cycle_length", cycle_length, at_least=1)
  if not callable(read):
    raise ValueError(f"`read` must be a function, got {read!r}")
  if compression_type not in _COMPRESSIONS:
    raise ValueError(
      f"`compression_type` must be one of {list(_COMPRESSIONS)}, got"
      f" {compression_type!r}"
    )
  open_file = _by_tensorflow(compression_type)
  if any(fetching.is_remote(path) for path in paths):
    open_file = opener(read, compression_type)
  return tf.data.Dataset.from_tensor_slices(
    tf.constant(paths, tf.string, shape=[len(paths)])
  ).interleave(
    open_file,
    # TensorFlow makes room for all of them in advance.
    cycle_length=min(cycle_length, max(len(paths), 1)),
    num_parallel_calls=tf.data.AUTOTUNE,
    deterministic=True,
  )


def opener(read: Callable, compression_type: str | None = None) -> Callable:
  """Returns a function from the name of a file to a dataset of its records.

  Args:
    read: what fetches the file, made by `reading.reader`.
    compression_type: see `records`.

  Raises:
    ImportError: if the extra `remote` is not installed.
  """
  crc32c = fetching.imported("google_crc32c").value
  for module in ("fsspec", "aiohttp"):
    fetching.imported(module)

  def split(name: Any, contents: Any) -> np.ndarray:
    path = fetching.as_bytes(name).decode()
    contents = fetching.as_bytes(contents)
    if compression_type is not None:
      contents = _decompressed(path, contents)
    # Objects: numpy's own strings lose the zeros at their end.
    return np.array(list(_split(path, contents, crc32c)), dtype=object)

  def open_file(name: tf.Tensor) -> tf.data.Dataset:
    found = tf.numpy_function(
      split, [name, read(name)], tf.string, stateful=False
    )
    return tf.data.Dataset.from_tensor_slices(tf.ensure_shape(found, [None]))

  return open_file


def _checked_names(names: Any) -> list[str]:
  is_sequence = isinstance(names, Sequence) and not isinstance(names, str)
  if not is_sequence or not all(
    isinstance(name, (str, os.PathLike)) for name in names
  ):
    raise ValueError(f"`names` must be a sequence of file names, got {names!r}")
  return [os.fspath(name) for name in names]


def _by_tensorflow(compression_type: str | None) -> Callable:
  return lambda name: tf.data.TFRecordDataset(name, compression_type)


def _decompressed(name: str, contents: bytes) -> bytes:
  try:
    return zlib.decompress(contents, _ANY_HEADER)
  except zlib.error as error:
    raise ValueError(f"{name} can't be decompressed: {error}") from error


def _split(
  name: str, contents: bytes, crc32c: Callable[[bytes], int]
) -> Iterator[bytes]:
  """Yields records: each is its length, data, and a checksum behind either.

  Source: https://www.tensorflow.org/tutorials/load_data/tfrecord
  """
  position = 0
  while position < len(contents):
    start = position
    length, position = _checked(name, contents, start, 8, crc32c)
    size = struct.unpack("<Q", length)[0]
    record, position = _checked(name, contents, position, size, crc32c)
    yield record


def _checked(
  name: str,
  contents: bytes,
  start: int,
  size: int,
  crc32c: Callable[[bytes], int],
) -> tuple[bytes, int]:
  """Returns `size` bytes, and the position behind their checksum."""
  end = start + size + 4
  if end > len(contents):
    raise ValueError(
      f"{name} is cut off: byte {end:,} is missing, it has {len(contents):,}"
    )
  data = contents[start : start + size]
  crc = crc32c(data)
  masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
  if struct.unpack_from("<I", contents, start + size)[0] != masked:
    raise ValueError(f"{name} is corrupt: wrong checksum behind byte {start:,}")
  return data, end
