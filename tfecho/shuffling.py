"""shuffle_after_echo: moves the copies of one element apart.

    dataset = dataset.apply(tfecho.echo(4))
    dataset = dataset.apply(
      tfecho.shuffle_after_echo(1024, min_distance=256)
    )
    dataset = dataset.batch(256)    # no batch holds an element twice

Natively echo and shuffle become one op, which holds every fresh element once
with the number of its copies left. The graph implementation shuffles the copies
with `Dataset.shuffle`.
"""

from __future__ import annotations

import fractions
import math
from collections.abc import Callable

import tensorflow as tf

from tfecho import native
from tfecho.checks import (
  MAX_ROOM,
  check_flag,
  check_name,
  checked_int,
  checked_seed,
)
from tfecho.datasets import EchoedDataset, op_metadata
from tfecho.echoing import EchoDataset
from tfecho.factors import Factor


def shuffle_after_echo(
  buffer_size: int,
  *,
  min_distance: int = 1,
  seed: int | None = None,
  reshuffle_each_iteration: bool = True,
  name: str | None = None,
) -> Callable[[tf.data.Dataset], tf.data.Dataset]:
  """Shuffles what `echo` emits; stands right behind it.

  Holds `buffer_size` fresh elements, each once, so the memory it takes does not
  grow with the factor. Each fresh element leaves after exactly as many
  emissions as `echo` gives it. Until the input ends, every emission is a
  uniform choice among the elements held whose last emission is at least
  `min_distance` positions back. Then the one with most copies left comes first,
  ties at random, which keeps the distance to the end in buffers of 4 distances
  and more.

  >>> dataset = tf.data.Dataset.range(6).apply(tfecho.echo(2))
  >>> dataset = dataset.apply(tfecho.shuffle_after_echo(4, min_distance=2))
  >>> sorted(int(x) for x in dataset)
  [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]

  Seeds, epochs and checkpoints behave as those of `Dataset.shuffle`; the
  contents of the buffer are part of an iterator's state. A checkpoint of
  another factor, size or distance is refused natively. Random access is not
  supported. As with `Dataset.shuffle`, a symbolic checkpoint may hold other
  elements once a stage between this one and `batch` has failed: TensorFlow
  drops what it was told in that batch. Errors upstream do no harm.

  With the graph implementation of `echo` this is `Dataset.shuffle` over as many
  copies as `buffer_size` fresh elements have, which share memory. It keeps the
  same counts, in an order of its own, and knows no `min_distance`. Never
  restore a checkpoint of another size there: `Dataset.shuffle` takes it, loses
  copies, and hands on elements of nothing, which are errors further down.

  Args:
    buffer_size: how many fresh elements are held.
    min_distance: how many positions two emissions of one fresh element are
      apart at least; at most half of `buffer_size`. With the batch size here,
      no batch holds an element twice. Native only.
    seed: makes the order reproducible.
    reshuffle_each_iteration: whether every epoch has an order of its own.
    name: name of the operation.

  Returns:
    A function to pass to `tf.data.Dataset.apply`.

  Raises:
    ValueError: if an argument is not as described, if the dataset is not the
      result of `echo`, or if the graph implementation would have to hold more
      than 2**28 copies, for which `Dataset.shuffle` makes room in advance.
  """
  buffer_size = checked_int("buffer_size", buffer_size, at_least=1)
  min_distance = checked_int("min_distance", min_distance, at_least=1)
  seed = checked_seed(seed)
  check_flag("reshuffle_each_iteration", reshuffle_each_iteration)
  check_name(name)
  if min_distance > max(buffer_size // 2, 1):
    raise ValueError(
      "`min_distance` must be at most `buffer_size` // 2 ="
      f" {buffer_size // 2}, got {min_distance}"
    )

  def _apply_fn(dataset: tf.data.Dataset) -> tf.data.Dataset:
    if not isinstance(dataset, EchoDataset):
      raise ValueError(
        "`shuffle_after_echo` stands right behind `echo`, got a"
        f" {type(dataset).__name__}. Elsewhere use `Dataset.shuffle`"
      )
    if dataset.library is None:
      return _graph_shuffle(dataset)
    return _native_shuffle(dataset, dataset.library)

  def _native_shuffle(
    echo: EchoDataset, library: native.Library
  ) -> tf.data.Dataset:
    variant = library.ops.shuffle_dataset_v190705550(
      tf.data.experimental.to_variant(echo.fresh),
      seeds=_seeds(seed, reshuffle_each_iteration=reshuffle_each_iteration),
      buffer_size=buffer_size,
      min_distance=min_distance,
      metadata=op_metadata(name),
      **echo.op_arguments(),
    )
    return EchoedDataset(echo.fresh, variant)

  def _graph_shuffle(echo: EchoDataset) -> tf.data.Dataset:
    if min_distance > 1:
      raise ValueError(
        "`min_distance` needs the native implementation of `echo`, got"
        f" {min_distance} behind the graph one"
      )
    return echo.shuffle(
      _num_copies(buffer_size, echo),
      seed=seed,
      reshuffle_each_iteration=reshuffle_each_iteration,
      name=name,
    )

  return _apply_fn


def _seeds(
  seed: int | None, *, reshuffle_each_iteration: bool
) -> tf.Tensor:
  """Returns a dataset of which the op takes two numbers for every epoch."""
  if seed is None and not reshuffle_each_iteration:
    # Drawn here: a dataset without a seed gets one whenever it is optimized,
    # which is once for every iterator.
    seed = tf.random.uniform([], maxval=tf.int64.max, dtype=tf.int64)
  return tf.data.experimental.to_variant(
    tf.data.Dataset.random(
      seed=seed, rerandomize_each_iteration=reshuffle_each_iteration
    )
  )


def _num_copies(buffer_size: int, echo: EchoDataset) -> int:
  copies = math.ceil(buffer_size * _mean_copies(echo.factor))
  if copies <= MAX_ROOM:
    return copies
  # Enough for all there are is as good.
  there_are = tf.get_static_value(echo.cardinality())
  if there_are is not None and 0 <= there_are <= MAX_ROOM:
    return max(int(there_are), 1)
  raise ValueError(
    f"`buffer_size` must be so small that at most {MAX_ROOM} copies are held"
    f" by the graph implementation, got {buffer_size}, which makes {copies}"
  )


def _mean_copies(factor: Factor) -> fractions.Fraction | float:
  if factor.variable is None:
    return factor.constant
  # Its value may change, but this is the best guess there is.
  value = tf.get_static_value(factor.variable.read_value())
  return 1.0 if value is None else max(1.0, float(value))
