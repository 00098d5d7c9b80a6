"""What a training is fed with: batches, and what is known about their pace."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from tfecho.pipeline import Pipeline
from tfecho.stats import Stats, monitor
from tfecho.training import workers
from tfecho.training.callbacks import EchoMonitor
from tfecho.training.durations import Duration, Timeline


@dataclasses.dataclass(frozen=True)
class Feed:
  """Batches to train on.

  Attributes:
    dataset: of batches, as `fit` takes it.
    sample: the same sort of batches, cheaper to have: not echoed or shuffled.
    timeline: what turns durations into steps.
    total_steps: steps of the whole training.
    epoch_steps: steps of what `fit` takes for an epoch.
    is_endless: whether `fit` has to be told that.
    monitors: callbacks that show in the logs what is counted in `dataset`.
  """

  dataset: tf.data.Dataset
  sample: tf.data.Dataset
  timeline: Timeline
  total_steps: int
  epoch_steps: int
  is_endless: bool
  monitors: list[EchoMonitor]

  @property
  def epochs(self) -> int:
    """Epochs of the whole training, the last of which may end early."""
    return math.ceil(self.total_steps / self.epoch_steps)


def make(
  data: Any,
  *,
  length: str | Duration,
  epoch: str | Duration,
  echo: Mapping[str, Any] | None,
  timeline: Timeline | None,
  stats: Stats | None,
  strategy: tf.distribute.Strategy | None = None,
) -> Feed:
  """Returns what `train` feeds the model with; for the arguments see there.

  Raises:
    ValueError: if an argument is not as described there.
  """
  duration = Duration.parse(length, argument="length")
  if isinstance(data, Pipeline):
    echo = _checked_echo(echo)
    _check_shards(data, strategy)
    known = _timeline_of_pipeline(data, echo, strategy)
    if timeline is not None:
      timeline.check_agrees(known, argument="timeline")
    timeline = timeline or known
    dataset, sample = _echoed(data, echo, stats), _sample(data)
    monitors = [] if stats is None else [_monitor(data, echo, stats)]
  elif isinstance(data, tf.data.Dataset):
    _refuse_for_dataset(echo=echo, stats=stats)
    timeline = timeline or _timeline_of_dataset(data)
    dataset = sample = data
    monitors = []
  else:
    raise ValueError(
      "`data` must be a `tfecho.Pipeline` or a `tf.data.Dataset`, got"
      f" {type(data).__name__}"
    )
  timeline = timeline.lasting(duration)
  total_steps = _steps(timeline, "length", duration)
  return Feed(
    dataset=dataset,
    sample=sample,
    timeline=timeline,
    total_steps=total_steps,
    epoch_steps=_epoch_steps(dataset, timeline, epoch, total_steps),
    is_endless=_is_endless(dataset),
    monitors=monitors,
  )


# --- A pipeline -------------------------------------------------------------


def _checked_echo(echo: Any) -> dict[str, Any]:
  if echo is not None and not isinstance(echo, Mapping):
    raise ValueError(
      "`echo` must be a dict of arguments of `Pipeline.dataset`, such as"
      f' {{"echo_after": "decode", "factor": 4}}, got {echo!r}'
    )
  return dict(echo or {})


def _is_echoed(echo: dict[str, Any]) -> bool:
  return echo.get("echo_after") is not None


def _echoed(
  pipeline: Pipeline, echo: dict[str, Any], stats: Stats | None
) -> tf.data.Dataset:
  if stats is None:
    return pipeline.dataset(**{**echo, "repeat": True})
  counts = {"stats": stats} if _is_echoed(echo) else {}
  dataset = pipeline.dataset(**{**echo, **counts, "repeat": True})
  return dataset.apply(monitor(stats))


def _monitor(
  pipeline: Pipeline, echo: dict[str, Any], stats: Stats
) -> EchoMonitor:
  size = pipeline.batch_size
  by_batch = echo.get("echo_after") == "batch"
  return EchoMonitor(
    stats, batch_size=size, examples_per_element=size if by_batch else 1
  )


def _sample(pipeline: Pipeline) -> tf.data.Dataset:
  plain = copy.copy(pipeline)
  plain.shuffle_buffer = None
  return plain.dataset()


def _check_shards(pipeline: Pipeline, strategy: Any) -> None:
  shards, several = pipeline.num_shards, workers.number(strategy)
  if several > 1 and shards not in (1, several):
    raise ValueError(
      f"`data` is one of {shards} shards, and {several} workers train: some of"
      " it would not be read, or twice"
    )


def _timeline_of_pipeline(
  pipeline: Pipeline, echo: dict[str, Any], strategy: Any
) -> Timeline:
  # That of an echo on stall is not known in advance.
  factor = echo.get("factor") if _is_echoed(echo) else 1
  is_known = factor is not None and not isinstance(factor, tf.Variable)
  examples = int(pipeline.source.cardinality())
  steps_per_epoch = None
  if pipeline.num_shards > 1 and workers.number(strategy) > 1:
    # A step takes a part of its batch from every worker's shard.
    counts = {"examples": max(examples, 0)}
    examples = round(workers.total(counts, strategy)["examples"])
  elif examples >= 0:
    names = ("echo_after", "factor", "max_factor")
    steps_per_epoch = pipeline.steps_per_epoch(
      **{name: echo[name] for name in names if name in echo}
    )
  return Timeline(
    batch_size=pipeline.batch_size,
    fresh_examples=examples if examples > 0 else None,
    factor=factor,
    steps_per_epoch=steps_per_epoch if is_known else None,
  )


# --- A dataset --------------------------------------------------------------


def _refuse_for_dataset(**arguments: Any) -> None:
  for argument, value in arguments.items():
    if value is not None:
      raise ValueError(
        f"`{argument}` needs a `tfecho.Pipeline` as `data`: a dataset has its"
        " echo already"
      )


def _timeline_of_dataset(dataset: tf.data.Dataset) -> Timeline:
  batches = int(dataset.cardinality())
  if batches == tf.data.UNKNOWN_CARDINALITY:
    raise ValueError(
      "`data` has an end and does not know where, so that `fit` of Keras 3"
      " makes a step too many in every epoch: tell it by"
      " `data.apply(tf.data.experimental.assert_cardinality(batches))`, or"
      " repeat it without an end"
    )
  if batches == 0:
    raise ValueError("`data` is empty")
  return Timeline(
    steps_per_epoch=None if _is_endless(dataset) else batches
  )


def _is_endless(dataset: tf.data.Dataset) -> bool:
  return bool(dataset.cardinality() == tf.data.INFINITE_CARDINALITY)


# --- Durations --------------------------------------------------------------


def _epoch_steps(
  dataset: tf.data.Dataset,
  timeline: Timeline,
  epoch: str | Duration,
  total_steps: int,
) -> int:
  steps = _steps(timeline, "epoch", epoch)
  if _is_endless(dataset):
    return min(steps, total_steps)
  batches = int(dataset.cardinality())
  if steps != batches:
    raise ValueError(
      f"`data` has {batches:,} batches, and an epoch {steps:,} steps: for other"
      " epochs than passes over the data, it must have no end"
    )
  return steps


def _steps(timeline: Timeline, argument: str, duration: str | Duration) -> int:
  parsed = Duration.parse(duration, argument=argument)
  try:
    steps = timeline.steps(parsed, argument=argument)
  except ValueError as error:
    if timeline.can_convert(parsed):
      raise
    raise ValueError(
      f"{error}, in a `timeline`, since `data` does not say it; or say how many"
      ' steps, in "ba"'
    ) from error
  if steps == 0:
    raise ValueError(f"`{argument}` must be longer than 0, got {duration!r}")
  return steps
