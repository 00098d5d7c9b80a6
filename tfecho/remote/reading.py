"""The counterpart of `tf.io.read_file` for object stores and web servers.

    data = names.map(
      tfecho.remote.read_file, num_parallel_calls=tf.data.AUTOTUNE
    )
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from tfecho.checks import check_number, checked_int
from tfecho.remote import fetching


def reader(
  *,
  attempts: int = 5,
  wait_seconds: float = 0.5,
  timeout_seconds: float = 60.0,
  storage_options: Mapping[str, Any] | None = None,
) -> Callable:
  """Makes a function that reads files wherever they lie, as `read_file` does.

  >>> read = tfecho.remote.reader(attempts=3, timeout_seconds=10)
  >>> tf.io.write_file("ram://reader/name", b"contents")
  >>> read("ram://reader/name").numpy()
  b'contents'

  Args:
    attempts: how often to ask for an object at most. What can't be cured by
      asking again, such as status 404 or 403, is an error at once.
    wait_seconds: what to wait after the first attempt, and twice as long after
      every further one, up to 30 seconds; of that a random part, at least half.
    timeout_seconds: after which an attempt has failed.
    storage_options: what fsspec is given to open the store, such as
      `{"anon": True}` for s3. By default all comes from its configuration.

  Returns:
    A function of a scalar string, the name, that returns a scalar string, the
    contents. It is stateless: a dataset that maps it can be saved.

  Raises:
    ValueError: if an argument is not as described.
  """
  check_number("wait_seconds", wait_seconds, above=0)
  check_number("timeout_seconds", timeout_seconds, above=0)
  if storage_options is not None and not isinstance(storage_options, Mapping):
    raise ValueError(
      f"`storage_options` must be a mapping or None, got {storage_options!r}"
    )
  fetcher = fetching.Fetcher(
    attempts=checked_int("attempts", attempts, at_least=1),
    wait_seconds=wait_seconds,
    timeout_seconds=timeout_seconds,
    storage_options=storage_options,
  )

  def fetch(name: Any) -> bytes:
    return fetcher(fetching.as_bytes(name).decode())

  def read_file(name: Any) -> tf.Tensor:
    name = tf.convert_to_tensor(name, tf.string)
    contents = tf.cond(
      tf.strings.regex_full_match(name, fetching.REMOTE),
      lambda: tf.numpy_function(fetch, [name], tf.string, stateful=False),
      lambda: tf.io.read_file(name),
    )
    return tf.ensure_shape(contents, [])

  return read_file


_read_file = reader()


def read_file(name: Any) -> tf.Tensor:
  """Reads a file: from `s3://` and `http(s)://` by fsspec, else by TensorFlow.

  >>> tf.io.write_file("ram://read_file/name", b"contents")
  >>> tfecho.remote.read_file("ram://read_file/name").numpy()
  b'contents'

  Args:
    name: scalar string.

  Returns:
    The contents, a scalar string. What keeps failing is tried five times;
    `reader` makes a function with other limits.

  Raises:
    OSError: if it can't be read; in a graph, and so in a dataset, a
      `tf.errors.OpError` that says the same. The message has the name.
  """
  return _read_file(name)
