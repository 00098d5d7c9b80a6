"""Draws elements through tf.data and says what one costs.

    probe = cost_of(dataset, stride=10_000)
    probe()  # microseconds per element

A Python loop costs some 50 us an element, a hundred times what is measured
here, so the elements are made and dropped inside TensorFlow.
"""

import time

import tensorflow as tf


def idiom(factor):
  """The echo that everybody copies; the contender in most comparisons."""
  return lambda dataset: dataset.flat_map(
    lambda x: tf.data.Dataset.from_tensors(x).repeat(factor)
  )


def in_strides(dataset, stride):
  """Every `stride`-th element; those between are made, but not handed out.

  `shard` skips, and many stages take short cuts when told to skip: `repeat`
  and `flat_map` pass it on, `prefetch` drops what it holds. `take` does not: it
  makes what is to be skipped, through every stage before it, and does little
  else.
  """
  return dataset.take(tf.int64.max).shard(stride, 0)


def without_injected_prefetch(dataset):
  """Keeps TensorFlow from adding a `prefetch` at the end of the pipeline.

  It would go on working while another contender is on the clock.
  """
  options = tf.data.Options()
  options.experimental_optimization.inject_prefetch = False
  return dataset.with_options(options)


def cost_of(dataset, *, stride, min_seconds=0.05):
  """Returns a probe for the microseconds that an element of `dataset` takes.

  The iterator stays alive between measurements, so that filling a shuffle
  buffer or tuning a prefetch happens once, off the clock, and so does its
  deletion, for which autotuning waits up to half a second.

  Args:
    dataset: A dataset that does not end.
    stride: Elements drawn at a time; many enough that the call from Python,
      some 50 us, does not count, and to use up what was read ahead.
    min_seconds: How long a measurement lasts at least.

  Returns:
    A function that measures once and returns microseconds per element.
  """
  iterator = iter(without_injected_prefetch(in_strides(dataset, stride)))

  def probe():
    # Off the clock: what was read ahead since the last measurement, and caches
    # that another contender has filled.
    next(iterator)
    elements, elapsed, start = 0, 0.0, time.perf_counter()
    while elapsed < min_seconds:
      next(iterator)
      elements += stride
      elapsed = time.perf_counter() - start
    return 1e6 * elapsed / elements

  probe()
  return probe


def ms_per_step(dataset, *, step_ms, warmup, measured):
  """Returns the milliseconds from step to step of a training that sleeps.

  Time is taken before the iterator is deleted.

  Args:
    dataset: What it trains on.
    step_ms: For how long a step sleeps.
    warmup: Steps before the clock starts, for buffers to fill.
    measured: Steps on the clock.
  """
  iterator = iter(dataset)

  def train(steps):
    for _ in range(steps):
      next(iterator)
      time.sleep(step_ms / 1e3)

  train(warmup)
  start = time.perf_counter()
  train(measured)
  return 1e3 * (time.perf_counter() - start) / measured
