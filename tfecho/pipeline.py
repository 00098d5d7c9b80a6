"""An input pipeline - read, decode, augment, batch - with a place for the echo.

    pipeline = tfecho.Pipeline(
      file_names,
      read=tf.io.read_file,
      decode=decode_jpeg,
      augment=crop_and_flip,
      batch_size=256,
      shuffle_buffer=10_000,
    )
    train = pipeline.dataset(echo_after="decode", factor=2)
    model.fit(train, epochs=90)

    train = pipeline.dataset(echo_after="decode", max_factor=8)   # on stall

What stands before the echo runs once for a fresh example, what stands behind it
once for every copy:

    echo_after   saves                            a repeat is
    "read"       reading                          decoded and augmented anew
    "decode"     reading and decoding             augmented anew
    "augment"    reading, decoding, augmenting    the same, among new neighbours
    "batch"      all of that, and batching        the very same batch

A last stage, `mix`, takes whole batches, and stands behind any echo.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfecho import sources, stages
from tfecho.checks import MAX_ROOM, check_flag, check_function, checked_int
from tfecho.echoing import check_implementation
from tfecho.factors import Factor
from tfecho.stats import Stats

PLACES = ("read", "decode", "augment", "batch")


class Pipeline:
  """Stages that turn names or records into batches, and one place for an echo.

  The stages are functions as `tf.data.Dataset.map` takes them. They are called
  in parallel, and elements keep their order. `print(pipeline)` shows them.

  >>> source = tf.data.Dataset.range(4)
  >>> pipeline = tfecho.Pipeline(source, decode=tf.square, batch_size=2)
  >>> [batch.numpy().tolist() for batch in pipeline.dataset()]
  [[0, 1], [4, 9]]
  >>> len(pipeline.dataset(echo_after="decode", factor=3))
  6

  To keep decoded examples in memory, decode and cache them in `source`. Behind
  an echo, `cache()` would store every copy.
  """

  def __init__(
    self,
    source: tf.data.Dataset | Sequence[str | os.PathLike],
    *,
    read: Callable | None = None,
    decode: Callable | None = None,
    augment: Callable | None = None,
    mix: Callable | None = None,
    batch_size: int,
    shuffle_buffer: int | None = None,
    drop_remainder: bool = False,
    num_shards: int = 1,
    shard_index: int = 0,
    input_context: tf.distribute.InputContext | None = None,
    seed: int | None = None,
  ):
    """Describes the stages; nothing runs before a dataset is iterated.

    Args:
      source: dataset of names or of records, or a sequence of file names.
      read: makes a record of a name, as `tf.io.read_file` does.
      decode: makes an example of a record.
      augment: makes what is batched of an example. If it has a parameter named
        `seed`, that is an int64 vector of two, another one for every call, as
        `tf.image.stateless_*` and `tf.random.stateless_*` take it: copies
        differ, and the position in the pipeline can be saved. So does one of
        `tfecho.training.augmentation` for the host; one for the device belongs
        into the training step, and is refused.
      mix: makes what is trained on of a batch, as mixup does; with a `seed`, if
        it has such a parameter, as `augment`. An echo, that of batches too,
        stands before it, so that repeated batches are mixed anew.
      batch_size: examples in a batch of this pipeline. Several workers or
        replicas with a pipeline each have as many batches of this size.
      shuffle_buffer: elements of `source` among which the next one is chosen,
        anew in every epoch. None keeps their order.
      drop_remainder: whether to leave an incomplete last batch out, which
        gives all batches a static shape.
      num_shards: number of workers that share `source`.
      shard_index: which of them this is. It gets every `num_shards`-th element
        of `source`, and tf.distribute is told not to shard once more.
      input_context: says both, as it comes from
        `tf.distribute.Strategy.distribute_datasets_from_function`.
      seed: makes everything random here reproducible, if the stages are, and
        a restored run go on exactly, with the same epochs to follow. Epochs
        still differ from each other, and so do shards.

    Raises:
      ValueError: if an argument is not as described. A batch has 2**28
        examples at most, since TensorFlow makes room for them in advance.
    """
    num_shards, shard_index = sources.shard(
      num_shards, shard_index, input_context
    )
    check_function("read", read)
    check_function("decode", decode)
    check_function("augment", augment)
    check_function("mix", mix)
    _check_side("augment", augment, on_batches=False)
    _check_side("mix", mix, on_batches=True)
    if shuffle_buffer is not None:
      shuffle_buffer = checked_int("shuffle_buffer", shuffle_buffer, at_least=1)
    if seed is not None:
      seed = checked_int("seed", seed, at_least=0)
    check_flag("drop_remainder", drop_remainder)
    source = sources.dataset(source)
    self.source = source.apply(sources.sharded(num_shards, shard_index))
    self.read = read
    self.decode = decode
    self.augment = augment
    self.mix = mix
    self.batch_size = checked_int(
      "batch_size", batch_size, at_least=1, at_most=MAX_ROOM
    )
    self.shuffle_buffer = shuffle_buffer
    self.drop_remainder = drop_remainder
    self.num_shards = num_shards
    self.shard_index = shard_index
    self.seed = seed

  def dataset(
    self,
    *,
    echo_after: str | None = None,
    factor: float | tf.Variable | None = None,
    max_factor: int | None = None,
    rounding: str = "even",
    echo_buffer: int | None = None,
    repeat: bool | None = None,
    stats: Stats | None = None,
    implementation: str = "auto",
  ) -> tf.data.Dataset:
    """Returns the batches, with everything echoed that passes `echo_after`.

    While copies are used, the stages before the echo work ahead. Right behind
    it, `shuffle_after_echo` moves copies apart, by default so far that no batch
    holds an element twice; with the graph implementation it may.

    With a constant factor and even rounding this is one pass over `source`, of
    known cardinality if that of `source` is, and `fit` needs nothing else. With
    a random rounding or a variable the number of batches is not known in
    advance. Then `source` is repeated before the echo, the dataset is endless,
    and `fit` has to be told where an epoch ends:

        echo = dict(echo_after="decode", factor=tfecho.factor_variable(2))
        model.fit(
          pipeline.dataset(**echo),
          steps_per_epoch=pipeline.steps_per_epoch(**echo),
          epochs=90,
        )

    `max_factor` instead of `factor` repeats only what training would otherwise
    wait for; see `echo_on_stall`. All of its sizes are chosen for the batches
    and the prefetch that follow, and where `source` has no threads of its own,
    `options.threading.private_threadpool_size`, the dataset gets some, so that
    reads that wait leave one to the stages behind the echo. The number of
    batches is not known in advance either; an epoch of `steps_per_epoch` then
    has as many as a pass without a repeat, and the next epoch goes on where it
    ended.

    Args:
      echo_after: "read", "decode", "augment" or "batch". None for no echo,
        which is what validation wants. Where `decode` or `augment` was left
        out, the echo stands in its place all the same.
      factor: how often to emit each element; see `echo`.
      max_factor: how often to emit each element at most, if training would wait
        for the next one; see `echo_on_stall`. Native only.
      rounding: "even" or "random"; see `echo`.
      echo_buffer: fresh elements that the shuffle behind the echo holds, at
        least 2 batches of them, and 4 to keep copies apart to the end of the
        input. By default 4 batches, but no less than 512. 0 for no shuffle:
        copies follow each other. Behind "batch" it counts batches, and the
        default is 0, as in the paper. With `max_factor`, there is no shuffle:
        it is how many elements are kept to be repeated, as many by default,
        but 4 batches behind "batch", and never 0. The log says how many bytes
        all of this holds. An element that is read again in the next pass is
        another one: where `source` has hardly more elements than this and
        starts again, copies from two passes meet in a batch.
      repeat: whether to start again at the end of `source`. By default only if
        the number of batches is not known in advance.
      stats: what counts at the echo. Native only.
      implementation: "auto", "native" or "graph"; see `echo`.

    Returns:
      A `tf.data.Dataset`.

    Raises:
      ValueError: if an argument is not as described, or there is no room for
        `shuffle_buffer` or, in a graph, `echo_buffer`.
      tfecho.native.NativeUnavailableError: if "native" can't be had.
    """
    check_implementation(implementation)
    self._check_echo(
      echo_after,
      factor,
      max_factor,
      rounding=rounding,
      echo_buffer=echo_buffer,
      stats=stats,
    )
    seeds = stages.spread(self.seed, self.shard_index)
    echo: dict[str, stages.Transformation]
    echo = dict.fromkeys(PLACES, stages.unchanged)
    if echo_after is not None:
      echo[echo_after] = self._echo(
        echo_after,
        factor,
        max_factor,
        rounding=rounding,
        echo_buffer=echo_buffer,
        seeds=seeds,
        stats=stats,
        implementation=implementation,
      )
    if repeat is not None:
      check_flag("repeat", repeat)
    else:
      repeat = not _is_countable(factor, max_factor, rounding)

    on_stall = max_factor is not None
    data = self.source
    data = stages.with_a_spare_thread(data) if on_stall else data
    data = data.apply(stages.shuffled(self.shuffle_buffer, seeds.order))
    data = data.repeat(None if repeat else 1)
    data = data.apply(stages.read(self.read))
    data = data.apply(echo["read"])
    data = data.apply(stages.mapped("decode", self.decode))
    data = data.apply(echo["decode"])
    data = data.apply(stages.mapped("augment", self.augment, seeds.augment))
    data = data.apply(echo["augment"])
    data = data.batch(self.batch_size, drop_remainder=self.drop_remainder)
    data = data.apply(echo["batch"])
    data = data.apply(stages.mapped("mix", self.mix, seeds.mix))
    # An echo on stall has to know how much is asked for ahead of the training.
    ahead = stages.BATCHES_AHEAD if on_stall else tf.data.AUTOTUNE
    data = data.prefetch(ahead)
    return data

  def steps_per_epoch(
    self,
    *,
    echo_after: str | None = None,
    factor: float | tf.Variable | None = None,
    max_factor: int | None = None,
    rounding: str = "even",
    echo_buffer: int | None = None,
  ) -> int:
    """Counts the batches that one pass over `source` makes.

    For `fit`, where it can't count by itself. With a constant factor and even
    rounding this is the cardinality of `dataset`; with random rounding, what a
    pass makes on average.

    >>> pipeline = tfecho.Pipeline(tf.data.Dataset.range(10), batch_size=4)
    >>> pipeline.steps_per_epoch()
    3
    >>> pipeline.steps_per_epoch(echo_after="decode", factor=2.5)
    7

    Args:
      echo_after: as for `dataset`.
      factor: as for `dataset`. Of a variable, the value that it has now: epochs
        keep this length whatever it becomes later. To plan with another one,
        give that number here.
      max_factor: as for `dataset`. Repeats are not counted: nobody knows them.
      rounding: as for `dataset`. It changes nothing here.
      echo_buffer: as for `dataset`. It changes nothing here.

    Returns:
      The number of optimizer steps, at least 1.

    Raises:
      ValueError: if an argument is not as described, if the cardinality of
        `source` is not known, or if all elements do not make one batch.
    """
    self._check_echo(
      echo_after,
      factor,
      max_factor,
      rounding=rounding,
      echo_buffer=echo_buffer,
    )
    count = sources.finite_cardinality(self.source)
    if factor is None:
      steps = self._num_batches(count)
    elif echo_after == "batch":
      steps = _num_emitted(self._num_batches(count), factor)
    else:
      steps = self._num_batches(_num_emitted(count, factor))
    if steps == 0:
      raise ValueError(
        f"`source` has {count} elements (shard {self.shard_index} of"
        f" {self.num_shards}), which make no batch of `batch_size`"
        f" {self.batch_size}"
      )
    return steps

  def __str__(self) -> str:
    """Returns one line for every stage, in the order that elements take."""
    lines = {
      "source": sources.describe(self.source),
      "shard": f"{self.shard_index} of {self.num_shards}",
      "shuffle": self.shuffle_buffer and f"among {self.shuffle_buffer:,}",
      "read": stages.describe(self.read),
      "decode": stages.describe(self.decode),
      "augment": stages.describe(self.augment),
      "batch": self.batch_size,
      "mix": stages.describe(self.mix),
    }
    return "\n".join(f"{k:8} {v}" for k, v in lines.items() if v is not None)

  def _check_echo(
    self,
    echo_after: str | None,
    factor: float | tf.Variable | None,
    max_factor: int | None,
    *,
    rounding: str,
    echo_buffer: int | None,
    stats: Stats | None = None,
  ) -> None:
    self._check_place(echo_after, factor, max_factor)
    if echo_after is None:
      _check_unused(rounding=rounding, echo_buffer=echo_buffer, stats=stats)
    elif max_factor is None:
      Factor.parse(factor, rounding=rounding, seed=None)
      self._buffer_size(echo_after, echo_buffer)
    else:
      checked_int("max_factor", max_factor, at_least=1)
      if rounding != "even":
        raise ValueError(f"`rounding` needs `factor`, got {rounding!r}")
      self._repeat_size(echo_after, echo_buffer)

  def _check_place(
    self,
    echo_after: str | None,
    factor: float | tf.Variable | None,
    max_factor: int | None,
  ) -> None:
    if echo_after not in (None, *PLACES):
      raise ValueError(
        f"`echo_after` must be None or one of {list(PLACES)}, got"
        f" {echo_after!r}"
      )
    if factor is not None and max_factor is not None:
      raise ValueError(
        f"`factor` and `max_factor` exclude each other, got {factor!r} and"
        f" {max_factor!r}"
      )
    how_often = max_factor if factor is None else factor
    if (echo_after is None) != (how_often is None):
      raise ValueError(
        "`echo_after` and `factor`, or `max_factor`, go together, got"
        f" {echo_after!r} and {how_often!r}"
      )
    if echo_after == "read" and self.read is None:
      raise ValueError(
        '`echo_after`="read" needs a `read` stage. If `source` reads by itself,'
        " pass `read=lambda record: record`"
      )

  def _echo(
    self,
    echo_after: str,
    factor: float | tf.Variable | None,
    max_factor: int | None,
    *,
    rounding: str,
    echo_buffer: int | None,
    seeds: stages.Seeds,
    stats: Stats | None,
    implementation: str,
  ) -> stages.Transformation:
    if max_factor is None:
      return stages.echoed(
        factor,
        rounding=rounding,
        buffer_size=self._buffer_size(echo_after, echo_buffer),
        min_distance=1 if echo_after == "batch" else self.batch_size,
        seeds=seeds,
        stats=stats,
        implementation=implementation,
      )
    return stages.echoed_on_stall(
      max_factor,
      batch_size=1 if echo_after == "batch" else self.batch_size,
      repeat_size=self._repeat_size(echo_after, echo_buffer),
      num_maps=self._num_maps_behind(echo_after),
      num_batch_maps=int(self.mix is not None),
      stats=stats,
      implementation=implementation,
    )

  def _buffer_size(self, echo_after: str, echo_buffer: int | None) -> int:
    if echo_after == "batch":
      default, least, unit = 0, 2, "batches"
    else:
      default = stages.default_echo_buffer(self.batch_size)
      least, unit = 2 * self.batch_size, "elements, two batches"
    if echo_buffer is None:
      return default
    echo_buffer = checked_int("echo_buffer", echo_buffer, at_least=0)
    if 0 < echo_buffer < least:
      raise ValueError(
        f"`echo_buffer` must be 0 or at least {least} {unit}, got {echo_buffer}"
      )
    return echo_buffer

  def _repeat_size(self, echo_after: str, echo_buffer: int | None) -> int:
    if echo_buffer is None and echo_after == "batch":
      return 4
    size = self._buffer_size(echo_after, echo_buffer)
    if size == 0:
      raise ValueError("`echo_buffer` must not be 0 with `max_factor`")
    return size

  def _num_maps_behind(self, echo_after: str) -> int:
    behind = {"read": [self.decode, self.augment], "decode": [self.augment]}
    return sum(stage is not None for stage in behind.get(echo_after, []))

  def _num_batches(self, count: int) -> int:
    full, rest = divmod(count, self.batch_size)
    return full if self.drop_remainder or rest == 0 else full + 1


def _check_side(argument: str, augment: Any, *, on_batches: bool) -> None:
  """Raises ValueError if an augmentation is for another place than this.

  Those of `tfecho.training.augmentation` say where they run.
  """
  if getattr(augment, "side", "host") != "host":
    raise ValueError(
      f"`{argument}` is {augment.__name__} for the {augment.side}: put it into"
      " the training step by `augmentation.in_train_step(model, augment)`, or"
      ' make it with `side="host"`'
    )
  if getattr(augment, "on_batches", on_batches) != on_batches:
    takes, place = ("images", "augment") if on_batches else ("batches", "mix")
    raise ValueError(
      f"`{argument}` is {augment.__name__}, which is for {takes}: give it as"
      f" `{place}`"
    )


def _check_unused(
  *, rounding: str, echo_buffer: int | None, stats: Stats | None
) -> None:
  unused = {
    "rounding": None if rounding == "even" else rounding,
    "echo_buffer": echo_buffer,
    "stats": stats,
  }
  for argument, value in unused.items():
    if value is not None:
      raise ValueError(f"`{argument}` needs `echo_after`, got {value!r}")


def _is_countable(
  factor: float | tf.Variable | None, max_factor: int | None, rounding: str
) -> bool:
  if factor is None:
    return max_factor is None
  parsed = Factor.parse(factor, rounding=rounding, seed=None)
  return parsed.variable is None and not parsed.random


def _num_emitted(count: int, factor: float | tf.Variable) -> int:
  value = factor.numpy().item() if isinstance(factor, tf.Variable) else factor
  emitted = Factor.parse(value, rounding="even", seed=None).cardinality(count)
  if emitted < 0:
    raise ValueError(
      f"`factor` {value} makes 2**63 elements or more of {count}"
    )
  return emitted
