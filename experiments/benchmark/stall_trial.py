"""A training that sleeps, fed by an upstream that sleeps, and what it waited.

    feed = stall_trial.Feed(stall_trial.pipeline("decode", max_factor=8))
    run = feed.start(ratio=4)
    quantities = run()
    quantities["waiting"], quantities["copies"], quantities["doubles"]

Sleeping takes no processor, so that several trainings can run side by side. A
training step takes `STEP_SECONDS`, upstream takes `ratio` times as long for a
batch. What the steps really took, and upstream, is part of what is measured.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import keras
import tensorflow as tf

import tfecho
from experiments.counting import FreshCounter
from experiments.upstream import Upstream
from tfecho import stages

BATCH_SIZE = 8
STEP_SECONDS = 0.012
MAX_FACTOR = 8

# Reads wait in threads of their own, or those of all trainings would wait for
# the two or so that TensorFlow has.
_INPUT_THREADS = 4

# From an upstream and `Stats` to batches of (ordinals, whatever).
Input = Callable[[Upstream, tfecho.Stats], tf.data.Dataset]


class Counts(NamedTuple):
  """What has been counted up to a moment."""

  wait_seconds: float
  think_seconds: float
  requests: int  # of batches
  consumed: int
  emitted: int
  read: int
  busy_seconds: float  # of upstream

  @classmethod
  def now(cls, stats, upstream):
    """Counts up to now."""
    return cls(
      stats.wait_seconds,
      stats.think_seconds,
      stats.requests,
      stats.consumed,
      stats.emitted,
      upstream.read,
      upstream.busy_seconds,
    )

  def since(self, before):
    """Counts from then on."""
    return Counts(*(now - then for now, then in zip(self, before)))


def quantities(counts):
  """Returns what the counts of a stretch of training say.

  Args:
    counts: `Counts`, of that stretch only.

  Returns:
    A dict: `waiting`, the share of its time that the training waited; `R`,
    upstream's time per fresh example over the training's per copy, as both
    were; `copies` per fresh example; `ideal copies`, as many as make up for the
    difference, within what is allowed.
  """
  seconds = counts.wait_seconds + counts.think_seconds
  downstream = counts.think_seconds / (counts.requests * BATCH_SIZE)
  upstream = counts.busy_seconds / max(counts.read, 1)
  return {
    "waiting": counts.wait_seconds / seconds,
    "R": upstream / downstream,
    "copies": counts.emitted / max(counts.consumed, 1),
    "ideal copies": clamped(upstream / downstream),
  }


def clamped(ratio):
  """The copies per fresh example that make the training wait the least."""
  return min(max(ratio, 1.0), float(MAX_FACTOR))


def pipeline(place=None, **echo):
  """Returns an `Input` through `tfecho.Pipeline`, echoed at a place or not."""
  def dataset(upstream, stats):
    data = tfecho.Pipeline(
      numbers(), read=upstream.wrap(_unchanged), batch_size=BATCH_SIZE
    )
    if place is None:
      return data.dataset()
    return data.dataset(echo_after=place, stats=stats, **echo)

  return dataset


def shuffled(buffer_size):
  """Returns an `Input` with an ordinary shuffle behind the echo on stall."""
  ahead = 2  # batches

  def dataset(upstream, stats):
    downstream = buffer_size + (ahead + 2) * BATCH_SIZE
    echo = tfecho.echo_on_stall(
      MAX_FACTOR,
      buffer_size=2 * BATCH_SIZE,
      repeat_size=8 * BATCH_SIZE,
      warmup=2 * BATCH_SIZE + downstream,
      stats=stats,
    )
    read = upstream.wrap(_unchanged)
    data = numbers().map(read, num_parallel_calls=tf.data.AUTOTUNE)
    data = data.apply(echo).shuffle(buffer_size)
    return data.batch(BATCH_SIZE).prefetch(ahead)

  return dataset


def numbers():
  """Elements without an end, numbered in the order in which they are read."""
  return tf.data.Dataset.range(10**12).enumerate()


def _unchanged(key):
  return key


@dataclasses.dataclass(frozen=True)
class Feed:
  """How a training is fed, at whatever pace.

  Attributes:
    input: An `Input`.
    fluctuation: Keywords of `Upstream` that make its pace change.
    settle_steps: Training steps off the clock, and
    settle_fresh: fresh batches, until what was read ahead at the start is used
      up as far as it will be.
    steps: Training steps on the clock, or so many that
    fresh: this many fresh batches come in them.
  """

  input: Input
  fluctuation: Mapping[str, float] = dataclasses.field(default_factory=dict)
  settle_steps: int = 40
  settle_fresh: int = 26
  steps: int = 100
  fresh: int = 12

  def start(self, ratio):
    """Gets a training ready, which takes time, and returns what runs it.

    Args:
      ratio: R, upstream's time for a fresh batch over that of a training step.

    Returns:
      A function that trains for a while. It returns `quantities` of what was on
      the clock, and of all batches `repeats`, the share of examples that had
      been in a batch before, and `doubles`, that of those in the same batch.
    """
    pace = max(ratio, 1)
    training = Training(self.input, ratio, self.fluctuation)

    def run():
      training.go_on(self.settle_steps + self.settle_fresh * pace)
      counts = training.go_on(max(self.steps, self.fresh * pace))
      training.stop()
      seen = training.counter
      return {
        **quantities(counts),
        "repeats": 1 - seen.trained / seen.emitted,
        "doubles": 1 - seen.distinct_share,
      }

    return run


class Training:
  """A loop that takes a batch and sleeps.

  Attributes:
    upstream: The `Upstream` that it is fed from.
    counter: `FreshCounter` of all its batches.
  """

  def __init__(self, make_input, ratio, fluctuation=None):
    self.upstream = Upstream(seconds_per_example(ratio), **(fluctuation or {}))
    self.counter = FreshCounter()
    self._stats = tfecho.Stats()
    self._batches = iter(
      monitored(make_input(self.upstream, self._stats), self._stats)
    )

  def go_on(self, steps):
    """Trains for the time of so many steps; returns the `Counts` of it.

    The time, not the steps: who waits gets less done. It ends with the first of
    the copies of something, so that the copies of a whole number of them are
    counted if this is called again.
    """
    before = self._counts()
    end = time.perf_counter() + steps * STEP_SECONDS
    is_fresh = False
    while time.perf_counter() < end or not is_fresh:
      is_fresh = self._step()
    return self._counts().since(before)

  def _step(self):
    """Takes a batch; returns whether there was something fresh in it."""
    before = self.counter.trained
    ordinals, *_ = next(self._batches)
    self.counter.update(ordinals.numpy())
    time.sleep(STEP_SECONDS)
    return self.counter.trained > before

  def _counts(self):
    """As the training sees it, behind what was made ahead of it."""
    return Counts.now(self._stats, self.upstream)._replace(
      consumed=self.counter.trained, emitted=self.counter.emitted
    )

  def stop(self):
    """Gives the input up, for which autotuning waits up to half a second."""
    del self._batches


def slowed_down(make_input, before, after, *, steps=80):
  """Trains while upstream changes its pace from one ratio to another.

  Returns:
    The share of time spent waiting before the change, and after it.
  """
  training = Training(make_input, before)
  training.go_on(steps)
  counts = training.go_on(steps)
  training.upstream.seconds = seconds_per_example(after)
  changed = training.go_on(2 * steps)
  return {
    "waiting before": quantities(counts)["waiting"],
    "waiting after": quantities(changed)["waiting"],
  }


def fit(ratio, *, settle_steps=60, steps=120):
  """Trains a model by `fit`, which computes a little and sleeps.

  Args:
    ratio: R, if computing took no time.
    settle_steps: Training steps off the clock.
    steps: Training steps on the clock.

  Returns:
    `quantities`.
  """
  upstream = Upstream(seconds_per_example(ratio))
  stats = tfecho.Stats()
  data = tfecho.Pipeline(
    numbers(),
    read=upstream.wrap(_unchanged),
    decode=lambda ordinal, key: (tf.ones([4]), tf.zeros([1])),
    batch_size=BATCH_SIZE,
  ).dataset(echo_after="decode", max_factor=MAX_FACTOR, stats=stats)
  clock = _Clock(stats, upstream, settle_steps)
  model = keras.Sequential([keras.Input([4]), keras.layers.Dense(1)])
  model.compile("sgd", "mse")
  model.fit(
    monitored(data, stats),
    steps_per_epoch=settle_steps + steps,
    callbacks=[clock],
    verbose=0,
  )
  return quantities(Counts.now(stats, upstream).since(clock.before))


class _Clock(keras.callbacks.Callback):
  """Makes steps longer, and remembers the counts from which on to measure."""

  def __init__(self, stats, upstream, settle_steps):
    super().__init__()
    self.before = None
    self._stats = stats
    self._upstream = upstream
    self._settle_steps = settle_steps

  def on_train_batch_end(self, batch, logs=None):
    time.sleep(STEP_SECONDS)
    if batch + 1 == self._settle_steps:
      self.before = Counts.now(self._stats, self._upstream)


def monitored(data, stats):
  """Returns the dataset as a training takes it, its waiting timed."""
  data = data.apply(tfecho.monitor(stats))
  return data.apply(stages.with_threads(_INPUT_THREADS))


def seconds_per_example(ratio):
  """What upstream takes for an example, for R = `ratio`."""
  return ratio * STEP_SECONDS / BATCH_SIZE


def side_by_side(start, ratios):
  """Runs trainings at the same time, which disturbs them all alike.

  Args:
    start: Called with each ratio; returns a function that returns a dict.
    ratios: Some R.

  Returns:
    See `named_by_ratio`.
  """
  runs = [start(ratio) for ratio in ratios]
  with concurrent.futures.ThreadPoolExecutor(len(runs)) as threads:
    results = threads.map(lambda run: run(), runs)
    return named_by_ratio(dict(zip(ratios, results)))


def named_by_ratio(results):
  """Returns one dict of all results, with names such as "R = 4, waiting"."""
  return {
    f"R = {ratio:g}, {name}": value
    for ratio, result in results.items()
    for name, value in result.items()
  }
