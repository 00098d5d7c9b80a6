"""What a pipeline starts from: names or records, or one worker's part of them.

    source = sources.dataset(["a.jpg", "b.jpg", "c.jpg"])
    source = source.apply(sources.sharded(num_shards=2, shard_index=0))
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfecho.checks import checked_int


def dataset(source: Any) -> tf.data.Dataset:
  """Returns `source`, or a dataset of it if it is a sequence of file names.

  Raises:
    ValueError: if it is neither.
  """
  if isinstance(source, tf.data.Dataset):
    return source
  if isinstance(source, Sequence) and not isinstance(source, (str, bytes)):
    if source and all(isinstance(n, (str, os.PathLike)) for n in source):
      names = [os.fspath(name) for name in source]
      return tf.data.Dataset.from_tensor_slices(names)
  raise ValueError(
    "`source` must be a `tf.data.Dataset`, such as"
    " `tf.data.Dataset.from_tensor_slices((files, labels))`, or a sequence of"
    f" one file name or more, got {reprlib.repr(source)}"
  )


def shard(
  num_shards: int,
  shard_index: int,
  input_context: tf.distribute.InputContext | None,
) -> tuple[int, int]:
  """Returns the number of shards and the index of this one, checked.

  Raises:
    ValueError: if they contradict each other.
  """
  if input_context is not None:
    if (num_shards, shard_index) != (1, 0):
      raise ValueError(
        "`input_context` says which shard this is: leave out `num_shards` and"
        f" `shard_index`, got {num_shards!r} and {shard_index!r}"
      )
    num_shards = input_context.num_input_pipelines
    shard_index = input_context.input_pipeline_id
  num_shards = checked_int("num_shards", num_shards, at_least=1)
  shard_index = checked_int("shard_index", shard_index, at_least=0)
  if shard_index >= num_shards:
    raise ValueError(
      f"`shard_index` must be below `num_shards`={num_shards}, got"
      f" {shard_index}"
    )
  return num_shards, shard_index


def sharded(
  num_shards: int, shard_index: int
) -> Callable[[tf.data.Dataset], tf.data.Dataset]:
  """Takes one worker's part, which tf.distribute must not divide once more."""

  def _apply_fn(data: tf.data.Dataset) -> tf.data.Dataset:
    if num_shards == 1:
      return data
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = (
      tf.data.experimental.AutoShardPolicy.OFF
    )
    return data.shard(num_shards, shard_index).with_options(options)

  return _apply_fn


def finite_cardinality(source: tf.data.Dataset) -> int:
  """Returns the number of elements.

  Raises:
    ValueError: if it is not known or not finite, with what to do then.
  """
  count = int(source.cardinality())
  if count == tf.data.INFINITE_CARDINALITY:
    raise ValueError(
      "`source` is endless, so that only you know what an epoch is: give `fit`"
      " a number of your own as `steps_per_epoch`"
    )
  if count == tf.data.UNKNOWN_CARDINALITY:
    raise ValueError(
      "`source` does not know how many elements it has: tell it by"
      " `source.apply(tf.data.experimental.assert_cardinality(count))`"
    )
  return count


def describe(source: tf.data.Dataset) -> str:
  """Returns how many elements there are, in words."""
  count = int(source.cardinality())
  if count == tf.data.INFINITE_CARDINALITY:
    return "endless"
  if count == tf.data.UNKNOWN_CARDINALITY:
    return "elements of unknown number"
  return f"{count:,} elements"
