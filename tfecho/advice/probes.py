"""Takes the time of datasets and of training steps, a little at a time.

    probe = Draws(dataset, batch_size=32)
    probe(0.1)                           # Cost of a batch, measured for 0.1 s
    probe = Steps(batches, train_step)
    probe(0.1)                           # Cost of a step

A probe keeps its iterator, so that buffers are filled, parallelism is tuned and
functions are traced once. Before the clock starts, it uses up what was read
ahead while others were measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfecho import stages
from tfecho.advice.costs import Cost

# A call from Python costs about 50 us, so it draws for a hundred times as long.
_SECONDS_PER_CALL = 0.005
_SECONDS_TO_FIND_OUT = 0.02

# What is ready when a measurement starts: the batches that are prefetched, and
# the one in the making with what the maps before it have at hand.
_READY_BATCHES = stages.BATCHES_AHEAD + 1

# What is left of that after all makes the first of them too fast.
_FEWEST_STEPS = 4

# The part of a measurement that is off the clock at least.
_SETTLING = 0.2


class Draws:
  """Draws elements of an endless dataset; they never leave TensorFlow."""

  def __init__(self, dataset: tf.data.Dataset, *, batch_size: int):
    """Starts to draw.

    Args:
      dataset: what to draw from.
      batch_size: elements that make a batch.
    """
    self._batch_size = batch_size
    self._stride = _stride(dataset)
    self._iterator = iter(_in_strides(dataset, self._stride))
    next(self._iterator)

  def __call__(self, seconds: float) -> Cost:
    """Returns the cost of a batch, measured for this long or a bit longer."""
    _repeat(lambda: next(self._iterator), _SETTLING * seconds, at_least=1)
    calls, cost = _timed(lambda: next(self._iterator), seconds)
    batches = calls * self._stride / self._batch_size
    return Cost(cost.seconds / batches, cost.cpu_seconds / batches)


class Steps:
  """Trains on the batches of an endless dataset."""

  def __init__(self, dataset: tf.data.Dataset, train_step: Callable):
    """Starts to train.

    Args:
      dataset: of batches.
      train_step: called with a batch.
    """
    self._iterator = iter(dataset.prefetch(stages.BATCHES_AHEAD))
    self._train_step = train_step
    self._step()

  def __call__(self, seconds: float) -> Cost:
    """Returns the cost of a step, measured for this long or a bit longer."""
    # Without training, so that upstream has no time to make others ready.
    for _ in range(_READY_BATCHES):
      next(self._iterator)
    _repeat(self._step, _SETTLING * seconds, at_least=2)
    # An accelerator may still be at work when a step returns.
    tf.test.experimental.sync_devices()
    steps, cost = _timed(
      self._step,
      seconds,
      at_least=_FEWEST_STEPS,
      finish=tf.test.experimental.sync_devices,
    )
    return Cost(cost.seconds / steps, cost.cpu_seconds / steps)

  def _step(self) -> None:
    self._train_step(next(self._iterator))


def _timed(
  call: Callable[[], Any],
  seconds: float,
  *,
  at_least: int = 2,
  finish: Callable[[], Any] = lambda: None,
) -> tuple[int, Cost]:
  start, cpu_start = time.perf_counter(), time.process_time()
  calls = _repeat(call, seconds, at_least=at_least)
  finish()
  return calls, Cost(
    time.perf_counter() - start, time.process_time() - cpu_start
  )


def _repeat(call: Callable[[], Any], seconds: float, *, at_least: int) -> int:
  """Calls until time is up; returns how often it did."""
  calls, end = 0, time.perf_counter() + seconds
  while calls < at_least or time.perf_counter() < end:
    call()
    calls += 1
  return calls


def _stride(dataset: tf.data.Dataset) -> int:
  """Returns how many elements to draw at a time."""
  iterator = iter(_in_strides(dataset, 1))
  next(iterator)
  # Long enough for what was made meanwhile not to count.
  calls, cost = _timed(lambda: next(iterator), _SECONDS_TO_FIND_OUT)
  return max(1, round(calls * _SECONDS_PER_CALL / cost.seconds))


def _in_strides(dataset: tf.data.Dataset, stride: int) -> tf.data.Dataset:
  """Every `stride`-th element; those between are made, but not handed out.

  Told to skip, many stages take short cuts. `zip` does not: it makes what is to
  be skipped, through every stage before it.
  """
  options = tf.data.Options()
  # It would go on working while another probe is on the clock.
  options.experimental_optimization.inject_prefetch = False
  strided = tf.data.Dataset.zip((dataset,)).shard(stride, 0)
  return strided.with_options(options)
