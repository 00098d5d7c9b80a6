"""Counts what an echo does, and times what the trainer waits.

    stats = tfecho.Stats()
    dataset = dataset.apply(tfecho.echo(4, stats=stats))
    ...
    dataset = dataset.prefetch(tf.data.AUTOTUNE)
    dataset = dataset.apply(tfecho.monitor(stats))    # the last stage

    stats.read, stats.consumed, stats.emitted, stats.wait_seconds

The counters live in the native library. An element costs them a few atomic
additions.
"""

from __future__ import annotations

import ctypes
import secrets
import weakref
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfecho import native
from tfecho.checks import check_name
from tfecho.datasets import UnaryDataset, flat_structure, op_metadata

_FIELDS = (
  "read",
  "consumed",
  "emitted",
  "queued",
  "requests",
  "wait_nanos",
  "think_nanos",
)
_NANOS_PER_SECOND = 1e9

_SHOWN = (
  "read",
  "consumed",
  "emitted",
  "mean_queued",
  "requests",
  "wait_seconds",
  "think_seconds",
)


class Stats:
  """Counters of one pipeline in this process, over all of its iterators.

  They count what happens, from the moment that this object is made: an
  iterator that is restored from a checkpoint counts from there on, and a
  second pass over the data adds to the first. They are no part of the
  iterator's state.

  >>> stats = tfecho.Stats()
  >>> dataset = tf.data.Dataset.range(3).apply(tfecho.echo(2, stats=stats))
  >>> [int(x) for x in dataset]
  [0, 0, 1, 1, 2, 2]
  >>> stats.read, stats.consumed, stats.emitted
  (3, 3, 6)

  Attributes:
    read: fresh elements taken from upstream, those read ahead included.
    consumed: fresh elements of which the first copy was handed on.
    emitted: elements handed on, copies included.
    copies: how many fresh elements were emitted how often, as a dict, of those
      that are used up.
    mean_queued: fresh elements that were waiting when `echo_on_stall` was asked
      for one, on average.
    requests: elements that passed the `monitor`.
    wait_seconds: time in which the trainer waited for `monitor`'s elements.
    think_seconds: time between an element and the request for the next one.

  Raises:
    tfecho.native.NativeUnavailableError: if the native ops can't be used here.
  """

  def __init__(self) -> None:
    library = native.load().c
    # Zero means "no stats" to the ops.
    self._id = 1 + secrets.randbelow(2**62)
    self._c = library
    library.TfechoStatsRegister(ctypes.c_int64(self._id))
    weakref.finalize(
      self, library.TfechoStatsUnregister, ctypes.c_int64(self._id)
    )

  @property
  def id(self) -> int:
    """The number by which the native ops find these counters."""
    return self._id

  @property
  def read(self) -> int:
    """Fresh elements taken from upstream, those read ahead included."""
    return self._values()["read"]

  @property
  def consumed(self) -> int:
    """Fresh elements of which the first copy was handed on."""
    return self._values()["consumed"]

  @property
  def emitted(self) -> int:
    """Elements handed on, copies included."""
    return self._values()["emitted"]

  @property
  def copies(self) -> dict[int, int]:
    """How many fresh elements were emitted how often."""
    capacity = 0
    while True:
      copies = (ctypes.c_int64 * capacity)()
      elements = (ctypes.c_int64 * capacity)()
      size = self._c.TfechoStatsHistogram(
        ctypes.c_int64(self._id), ctypes.c_int64(capacity), copies, elements
      )
      if size <= capacity:
        return dict(zip(copies[:size], elements[:size]))
      capacity = size

  @property
  def mean_queued(self) -> float:
    """Fresh elements waiting at a request to `echo_on_stall`, on average."""
    values = self._values()
    return values["queued"] / max(values["emitted"], 1)

  @property
  def requests(self) -> int:
    """Elements that passed the `monitor`."""
    return self._values()["requests"]

  @property
  def wait_seconds(self) -> float:
    """Seconds in which the trainer waited for `monitor`'s elements."""
    return self._values()["wait_nanos"] / _NANOS_PER_SECOND

  @property
  def think_seconds(self) -> float:
    """Seconds between an element and the request for the next one."""
    return self._values()["think_nanos"] / _NANOS_PER_SECOND

  def reset(self) -> None:
    """Sets every counter to zero."""
    self._c.TfechoStatsReset(ctypes.c_int64(self._id))

  def _values(self) -> dict[str, int]:
    values = (ctypes.c_int64 * len(_FIELDS))()
    self._c.TfechoStatsRead(ctypes.c_int64(self._id), values)
    return dict(zip(_FIELDS, values))

  def __repr__(self) -> str:
    shown = (f"{name}={getattr(self, name)}" for name in _SHOWN)
    return f"Stats({', '.join(shown)})"


def monitor(
  stats: Stats, *, name: str | None = None
) -> Callable[[tf.data.Dataset], tf.data.Dataset]:
  """Times how long the trainer waits for elements, and how long it is away.

  Belongs at the very end, behind the last `prefetch`: what an echo waits for
  is not what the trainer waits for, since buffers stand between them.
  TensorFlow then adds no prefetch of its own, which would come between the
  trainer and this. Random access is not supported. Native only.

  >>> stats = tfecho.Stats()
  >>> dataset = tf.data.Dataset.range(3).apply(tfecho.monitor(stats))
  >>> [int(x) for x in dataset]
  [0, 1, 2]
  >>> stats.requests
  3

  Args:
    stats: where to count `requests`, `wait_seconds` and `think_seconds`.
    name: name of the operation.

  Returns:
    A function to pass to `tf.data.Dataset.apply`.

  Raises:
    ValueError: if `stats` is no `tfecho.Stats`.
  """
  check_stats(stats)
  check_name(name)

  def _apply_fn(dataset: tf.data.Dataset) -> tf.data.Dataset:
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    monitored = _monitored(dataset, stats, trainer=True, name=name)
    return monitored.with_options(options)

  return _apply_fn


def count_read(
  dataset: tf.data.Dataset, stats: Stats | None
) -> tf.data.Dataset:
  """Returns `dataset`, with its elements counted as read."""
  if stats is None:
    return dataset
  return _monitored(dataset, stats, trainer=False, name=None)


def check_stats(stats: Any) -> None:
  """Raises ValueError if `stats` is no `Stats`."""
  if not isinstance(stats, Stats):
    raise ValueError(
      f"`stats` must be a `tfecho.Stats`, got {type(stats).__name__}"
    )


def _monitored(
  dataset: tf.data.Dataset, stats: Stats, *, trainer: bool, name: str | None
) -> tf.data.Dataset:
  variant = native.load().ops.assert_next_dataset_v190705550(
    tf.data.experimental.to_variant(dataset),
    stats=stats.id,
    trainer=trainer,
    metadata=op_metadata(name),
    **flat_structure(dataset),
  )
  return UnaryDataset(dataset, variant)
