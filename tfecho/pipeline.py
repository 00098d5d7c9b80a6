"""An input pipeline - read, decode, augment, batch - with a place for the echo.

  pipeline = tfecho.Pipeline(
    file_names,
    read=tf.io.read_file,
    decode=decode_jpeg,
    augment=crop_and_flip,
    batch_size=256,
    shuffle_buffer=10_000,
  )
  train = pipeline.dataset(echo_after="decode", factor=2, seed=0)
  model.fit(train, epochs=90)

Whatever stands before the echo runs once per fresh example, whatever stands
behind it once per copy:

  echo_after  saves                        a repeat is
  "read"      reading                      decoded and augmented anew
  "decode"    reading, decoding            augmented anew
  "augment"   reading, decoding, augments  the same, among other neighbours
  "batch"     all of it                    the very same batch
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import tensorflow as tf

from tfecho import stages

PLACES = ("read", "decode", "augment", "batch")

_logger = logging.getLogger(__name__)


class Pipeline:
  """Stages that turn names or records into batches, and one place for an echo.

  ```python
  pipeline = tfecho.Pipeline(
    tf.data.Dataset.range(6), decode=lambda i: i * i, batch_size=2)
  print(pipeline)
  for batch in pipeline.dataset():
    print(batch.numpy())
  ```

  The stages are functions as `tf.data.Dataset.map` takes them, and called in
  parallel. To cache decoded examples, pass `source.map(decode).cache()` as the
  source: a cache behind an echo would store every copy.
  """

  def __init__(
    self,
    source: tf.data.Dataset | Sequence[str | os.PathLike],
    *,
    read: Callable | None = None,
    decode: Callable | None = None,
    augment: Callable | None = None,
    batch_size: int,
    shuffle_buffer: int | None = None,
    drop_remainder: bool = False,
    num_shards: int = 1,
    shard_index: int = 0,
    input_context: tf.distribute.InputContext | None = None,
  ):
    """Describes a pipeline; nothing is read before a dataset is iterated.

    Args:
      source: A dataset of names or of records, or a sequence of file names.
      read: From a name to a record, such as `tf.io.read_file`.
      decode: From a record to an example.
      augment: From an example to what is batched. If it has a parameter named
        `seed` it is given an int64 vector of two, another one for each call,
        for `tf.image.stateless_*` and `tf.random.stateless_*`: copies differ,
        and the position in the pipeline can be saved.
      batch_size: Examples per batch of this pipeline: per replica or per
        worker if there are several.
      shuffle_buffer: From how many elements of `source` the next one is drawn,
        in another order in every epoch. None leaves them in their order.
      drop_remainder: Whether an incomplete last batch is left out. Batches
        have a static shape then.
      num_shards: How many workers divide `source` among them.
      shard_index: Which part is this worker's: every `num_shards`-th element,
        from this one on. Turns the sharding of tf.distribute off.
      input_context: Gives both of the above, for
        `tf.distribute.Strategy.distribute_datasets_from_function`.

    Raises:
      TypeError: If `source` is neither a dataset nor names, or a stage is not
        callable.
      ValueError: If a number is out of its range.
    """
    if input_context is not None:
      if (num_shards, shard_index) != (1, 0):
        raise ValueError(
          "`input_context` says which shard this is: leave out `num_shards` "
          f"and `shard_index`, got {num_shards} and {shard_index}"
        )
      num_shards = input_context.num_input_pipelines
      shard_index = input_context.input_pipeline_id
    self.batch_size = _at_least(1, "batch_size", batch_size)
    if shuffle_buffer is not None:
      _at_least(1, "shuffle_buffer", shuffle_buffer)
    self.shuffle_buffer = shuffle_buffer
    self.drop_remainder = drop_remainder
    self.num_shards = _at_least(1, "num_shards", num_shards)
    self.shard_index = _at_least(0, "shard_index", shard_index)
    if shard_index >= num_shards:
      raise ValueError(
        f"`shard_index` must be below `num_shards`, {num_shards}, got "
        f"{shard_index}"
      )
    self.read = _callable("read", read)
    self.decode = _callable("decode", decode)
    self.augment = _callable("augment", augment)
    self.source = stages.shard(num_shards, shard_index)(_dataset(source))
