"""The stages that `Pipeline` is made of, each as `Dataset.apply` takes it.

  data = data.apply(stages.shuffled(10_000, seeds.order))
  data = data.apply(stages.mapped("decode", decode))
  data = data.apply(stages.echoed(4, buffer_size=1024, min_distance=256, ...))
  data = data.apply(stages.mapped("augment", augment, seeds.augment))

A stage that was left out passes its input on, so that a pipeline reads as one
column of lines, whichever of its stages are in use.
"""

from __future__ import annotations

import functools
import inspect
import logging
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfecho.checks import MAX_ROOM, checked_int
from tfecho.datasets import element_bytes
from tfecho.echoing import echo
from tfecho.shuffling import shuffle_after_echo
from tfecho.stalling import echo_on_stall
from tfecho.stats import Stats

Transformation = Callable[[tf.data.Dataset], tf.data.Dataset]

# Batches made ahead of a training that echoes on stall.
BATCHES_AHEAD = 2

_logger = logging.getLogger("tfecho")


class Seeds(NamedTuple):
  """One seed for each stage that draws."""

  order: int | None = None
  rounding: int | None = None
  copies: int | None = None
  augment: int | None = None
  mix: int | None = None


def spread(seed: int | None, shard_index: int) -> Seeds:
  """Makes independent seeds out of one, other ones on every shard.

  With the same ones on all workers, the i-th examples of all of them would be
  augmented alike.
  """
  if seed is None:
    return Seeds()
  words = np.random.SeedSequence([seed, shard_index]).generate_state(5)
  return Seeds(*(int(word) for word in words))


def cores() -> int:
  """Returns how many processor cores this process may use."""
  if hasattr(os, "sched_getaffinity"):
    return len(os.sched_getaffinity(0))
  return os.cpu_count() or 1


def default_echo_buffer(batch_size: int) -> int:
  """Returns how many fresh elements an echo before `batch` holds by default."""
  return max(4 * batch_size, 512)


def unchanged(data: tf.data.Dataset) -> tf.data.Dataset:
  """Does nothing."""
  return data


def shuffled(buffer_size: int | None, seed: int | None) -> Transformation:
  """`Dataset.shuffle`, in another order in every epoch.

  Raises:
    ValueError: when it is applied, if there is no room for the buffer.
  """
  if buffer_size is None:
    return unchanged

  def apply(data: tf.data.Dataset) -> tf.data.Dataset:
    # TensorFlow makes room for the buffer in advance, however little there is.
    count = int(data.cardinality())
    size = buffer_size if count < 1 else min(buffer_size, count)
    checked_int("shuffle_buffer", size, at_least=1, at_most=MAX_ROOM)
    return data.shuffle(size, seed=seed)

  return apply


def private_threads(source: tf.data.Dataset) -> int:
  """Returns how many threads a pipeline has of its own, 0 if it has none."""
  return source.options().threading.private_threadpool_size or 0


def with_threads(count: int) -> Transformation:
  """Gives a pipeline so many threads of its own."""
  options = tf.data.Options()
  options.threading.private_threadpool_size = count
  return lambda data: data.with_options(options)


def with_a_spare_thread(source: tf.data.Dataset) -> tf.data.Dataset:
  """Gives a pipeline without threads of its own one more than cores.

  Else it shares as many as there are cores with all others. Reads that wait may
  take every one of them, and copies then wait for the stages behind the echo.
  """
  if private_threads(source) > 0:
    return source
  return source.apply(with_threads(cores() + 1))


def reads_at_once(threads: int) -> int:
  """Returns how many reads may be under way: of a private pool, all but one.

  Reads that wait take a thread each. If storage hangs and all threads of a
  private pool wait, nothing is left for what stands behind: copies would not be
  decoded, and a training stop that has something to go on with.

  Args:
    threads: what `private_threads` returns.
  """
  return threads - 1 if threads > 1 else tf.data.AUTOTUNE


def read(function: Callable | None) -> Transformation:
  """`mapped`, with `reads_at_once`."""

  def apply(data: tf.data.Dataset) -> tf.data.Dataset:
    at_once = reads_at_once(private_threads(data))
    return data.apply(mapped("read", function, num_parallel_calls=at_once))

  return apply


def mapped(
  name: str,
  function: Callable | None,
  seed: int | None = None,
  *,
  num_parallel_calls: int = tf.data.AUTOTUNE,
) -> Transformation:
  """`Dataset.map` in parallel, with a seed for each element where wanted.

  Args:
    name: of the argument that `function` was given as.
    function: what to call. If it `takes_seed`, it is given an int64 vector of
      two, another one for every element in every epoch.
    seed: what these seeds are drawn from; None for others in every run.
    num_parallel_calls: see `Dataset.map`.

  Returns:
    A function to pass to `tf.data.Dataset.apply`. It raises ValueError with
    `name` if `function` does not take the elements.
  """
  if function is None:
    return unchanged

  def apply(data: tf.data.Dataset) -> tf.data.Dataset:
    spec = data.element_spec
    call = function
    if takes_seed(function):
      # A dataset, rather than random ops inside of `function`: its position is
      # part of the iterator, which can be saved.
      draws = tf.data.Dataset.random(seed, rerandomize_each_iteration=True)
      seeds = draws.batch(2, drop_remainder=True)
      data = tf.data.Dataset.zip((data, seeds))
      call = _called_with_seed(function)
    try:
      return data.map(call, num_parallel_calls=num_parallel_calls)
    except Exception as error:
      message = f"`{name}` failed on elements of {spec}: {error}"
      raise ValueError(message) from error

  return apply


def takes_seed(function: Callable) -> bool:
  """Says whether `function` has a parameter named `seed` that is still open."""
  if isinstance(function, functools.partial) and "seed" in function.keywords:
    return False
  try:
    return "seed" in inspect.signature(function).parameters
  except (TypeError, ValueError):  # Some builtins don't tell.
    return False


def _called_with_seed(function: Callable) -> Callable:
  def call(element: Any, seed: tf.Tensor) -> Any:
    # As `Dataset.map` does: it leaves a named tuple in one piece.
    if type(element) is tuple:
      return function(*element, seed=seed)
    return function(element, seed=seed)

  return call


def echoed(
  factor: float | tf.Variable,
  *,
  rounding: str,
  buffer_size: int,
  min_distance: int,
  seeds: Seeds,
  stats: Stats | None,
  implementation: str,
) -> Transformation:
  """`echo`, and right behind it the shuffle that moves the copies apart.

  Args:
    factor: see `echo`.
    rounding: see `echo`.
    buffer_size: fresh elements in the shuffle; 0 for no shuffle.
    min_distance: positions between copies, where the native ops see to it.
    seeds: of the roundings and of the shuffle.
    stats: see `echo`.
    implementation: see `echo`.

  Returns:
    A function to pass to `tf.data.Dataset.apply`.
  """
  repeat = echo(
    factor,
    rounding=rounding,
    seed=seeds.rounding if rounding == "random" else None,
    stats=stats,
    implementation=implementation,
  )

  def apply(data: tf.data.Dataset) -> tf.data.Dataset:
    copies = data.apply(repeat)
    if buffer_size == 0:
      return copies
    _logger.info(
      "tfecho: the shuffle behind the echo holds %d fresh elements, %s",
      buffer_size,
      _size(data.element_spec, buffer_size),
    )
    shuffle = shuffle_after_echo(
      buffer_size,
      min_distance=min_distance if copies.library else 1,
      seed=seeds.copies,
    )
    try:
      return copies.apply(shuffle)
    except ValueError as error:  # The graph may have no room for it.
      raise ValueError(f"`echo_buffer`: {error}") from error

  return apply


def echoed_on_stall(
  max_factor: int,
  *,
  batch_size: int,
  repeat_size: int,
  num_maps: int,
  num_batch_maps: int,
  stats: Stats | None,
  implementation: str,
) -> Transformation:
  """`echo_on_stall` before a `batch` and a prefetch of `BATCHES_AHEAD`.

  Args:
    max_factor: see `echo_on_stall`.
    batch_size: elements that the stage behind asks for at once.
    repeat_size: see `echo_on_stall`.
    num_maps: parallel maps between it and the batch.
    num_batch_maps: parallel maps behind the batch.
    stats: see `echo_on_stall`.
    implementation: see `echo`; "graph" is refused.

  Returns:
    A function to pass to `tf.data.Dataset.apply`.
  """
  if implementation == "graph":
    raise ValueError(
      '`max_factor` needs the native implementation, got "graph"'
    )
  buffer_size = 2 * batch_size

  def apply(data: tf.data.Dataset) -> tf.data.Dataset:
    # Until all of this is full, requests come as fast as they are served, which
    # says nothing about the training: what waits behind, the batch that is
    # taken, the one in the making, and what a parallel map has begun and what
    # it has ready. It makes as many calls at once as there are threads.
    in_a_map = 2 * max(cores(), private_threads(data))
    downstream = (BATCHES_AHEAD + 2 + num_batch_maps * in_a_map) * batch_size
    downstream += num_maps * in_a_map
    held = buffer_size + repeat_size
    _logger.info(
      "tfecho: the echo on stall holds up to %d elements, %s",
      held,
      _size(data.element_spec, held),
    )
    return data.apply(
      echo_on_stall(
        max_factor,
        buffer_size=buffer_size,
        repeat_size=repeat_size,
        warmup=buffer_size + downstream,
        stats=stats,
      )
    )

  return apply


def _size(element_spec: Any, count: int) -> str:
  size = element_bytes(element_spec)
  return "of unknown size" if size is None else f"{count * size:,} bytes"


def describe(function: Callable | None) -> str | None:
  """Returns the name of a `mapped` function, None if there is none."""
  if function is None:
    return None
  name = getattr(function, "__name__", type(function).__name__)
  return f"{name}, with seeds" if takes_seed(function) else name
