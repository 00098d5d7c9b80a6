"""echo_on_stall: an element again, when the next one isn't there yet.

    dataset = dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE)
    dataset = dataset.batch(256)
    dataset = dataset.apply(tfecho.echo_on_stall(8, buffer_size=2))

While upstream keeps up, this is a prefetch and nothing is repeated. When it
does not, the trainer goes on with what is in memory instead of waiting, up to
`max_factor` times with the same element.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfecho import native
from tfecho.checks import check_name, checked_int
from tfecho.datasets import EchoedDataset, flat_structure, op_metadata
from tfecho.stats import Stats, check_stats


def echo_on_stall(
  max_factor: int,
  *,
  buffer_size: int,
  repeat_size: int | None = None,
  warmup: int | None = None,
  stats: Stats | None = None,
  name: str | None = None,
) -> Callable[[tf.data.Dataset], tf.data.Dataset]:
  """Emits an element again when a request would have to wait for a fresh one.

  Upstream is read in the background into a queue of `buffer_size`. A request
  gets the oldest fresh element. If none is ready, it gets the least recently
  emitted of the `repeat_size` elements kept in memory that was emitted fewer
  than `max_factor` times; only if there is none does it wait. Every fresh
  element is emitted at least once and at most `max_factor` times, first
  appearances in the order of upstream. After the end of the input nothing is
  repeated. From a full memory the element that was emitted most often leaves
  first, then the oldest.

  Timing decides the order, so two runs differ. Contents and counts survive
  saving and restoring an iterator exactly, the interleaving does not. Symbolic
  checkpoints and random access are not supported. Native only.

  >>> dataset = tf.data.Dataset.range(5)
  >>> dataset = dataset.apply(tfecho.echo_on_stall(1, buffer_size=2))
  >>> [int(x) for x in dataset]
  [0, 1, 2, 3, 4]

  Sizes, for a batch size B (`tfecho.Pipeline` chooses them):

  ============ ===================== =====================================
               before `batch`        behind `batch`
  ============ ===================== =====================================
  buffer_size  2 B                   2, or as many as upstream makes at once
  repeat_size  B or more             as many batches as memory affords
  warmup       all that is held      what `prefetch` behind it holds
               downstream
  ============ ===================== =====================================

  * `buffer_size` must cover the largest burst that downstream asks for: below
    B, a share of 1 - buffer_size / B is repeated even if upstream is fast
    enough.
  * With `repeat_size` below B batches hold elements twice.
  * A shuffle or a prefetch that fills up asks without end, which looks like a
    stall. Put a shuffle in front, or count what it holds into `warmup`.
  * Reads that wait hold a thread each, and stages behind this need one: give
    the dataset more than there are reads at once, by
    `options.threading.private_threadpool_size`.
  * Put this behind `repeat()`, or the start recurs in every epoch; and never
    put `cache()` behind it.
  * Where upstream is slower than even `max_factor` copies make up for, the
    training waits, and then takes a fresh element as often as it may at once:
    batches hold elements many times. Allow more copies there.

  Args:
    max_factor: how often an element is emitted at most; 1 makes this a
      prefetch.
    buffer_size: fresh elements that wait at most.
    repeat_size: emitted elements kept to be emitted again at most;
      `buffer_size` by default.
    warmup: the first elements, all of them fresh; `buffer_size` by default.
    stats: counts fresh elements and copies.
    name: name of the operation.

  Returns:
    A function to pass to `tf.data.Dataset.apply`. The number of elements is
    known if `max_factor` is 1 or the input is endless or empty.

  Raises:
    ValueError: if an argument is not as described.
    tfecho.native.NativeUnavailableError: if the native ops can't be used here.

  Reference:
    The rule is ours; the idea of repeating only what would be waited for is
    from Choi, Passos, Shallue, Dahl, "Faster Neural Network Training with Data
    Echoing", arXiv 1907.05550.
  """
  max_factor = checked_int("max_factor", max_factor, at_least=1)
  buffer_size = checked_int("buffer_size", buffer_size, at_least=1)
  sizes = {
    "max_factor": max_factor,
    "buffer_size": buffer_size,
    "repeat_size": _size("repeat_size", repeat_size, buffer_size, at_least=1),
    "warmup": _size("warmup", warmup, buffer_size, at_least=0),
  }
  check_name(name)
  if stats is not None:
    check_stats(stats)
  library = native.load()

  def _apply_fn(dataset: tf.data.Dataset) -> tf.data.Dataset:
    variant = library.ops.prefetch_dataset_v190705550(
      tf.data.experimental.to_variant(dataset),
      stats=0 if stats is None else stats.id,
      metadata=op_metadata(name),
      **sizes,
      **flat_structure(dataset),
    )
    return EchoedDataset(dataset, variant)

  return _apply_fn


def _size(argument: str, size: Any, default: int, *, at_least: int) -> int:
  if size is None:
    return default
  return checked_int(argument, size, at_least=at_least)
