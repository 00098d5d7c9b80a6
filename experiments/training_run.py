"""One training run, from its settings to what it measured.

```python
result = run(settings)
result["curve"]["consumed"]      # fresh examples, at every evaluation
```
"""

from __future__ import annotations

import functools
import math
import time

import keras

import tfecho
from experiments import curves, feeding, workloads
from experiments.counting import FreshCounter
from experiments.evaluating import Evaluation
from experiments.feed_log import FeedLog
from experiments.records import COLUMNS
from experiments.store import objects, process
from experiments.upstream import Upstream
from tfecho.training import (
  EchoFactorSchedule,
  StopAtTarget,
  Timeline,
  schedules,
  train,
)

# Examples for which upstream keeps a pace that it has drawn: several batches,
# since jitter within a batch evens out before anyone waits for it.
_SPELL = 256


def run(settings, *, on_evaluation=lambda step, metric: None):
  """Trains once.

  Args:
    settings: `RunSettings`.
    on_evaluation: Called with the step and the metric at every evaluation.

  Returns:
    A dict that JSON can hold: `metric`, its name and direction, `counts` of the
    whole run, those of the store included if there is one, and `curve` (see
    `records.COLUMNS`), which says where a target was `curves.reached`.
  """
  # Before there are any datasets: their seeds depend on the global one.
  keras.utils.set_random_seed(settings.seed)
  workload = workloads.get(settings.workload, settings.preset)
  upstream = Upstream(
    settings.upstream_ms / 1_000,
    jitter=settings.upstream_jitter,
    spell=_SPELL,
    seed=settings.seed,
  )
  store = _store(settings)
  course = _Course(workload, upstream, store, on_evaluation)
  _train(settings, workload, upstream, store, course)
  return {
    "metric": {"name": workload.metric_name, "maximize": workload.maximize},
    "counts": course.counts(),
    "curve": course.curve,
  }


def learning_rate(settings):
  """Returns the rate: a number, or a schedule written in durations."""
  if settings.measure == "target":
    return settings.learning_rate
  return schedules.cosine(
    settings.learning_rate, resolution=settings.schedule_resolution
  )


def factor_schedule(settings):
  """Returns the echoing factor as a function of the step, or None."""
  arm = settings.arm
  if arm.last_factor is None:
    return None
  total = f"{settings.max_steps}ba"
  return schedules.linear(arm.factor, total, end=arm.last_factor)


def timeline(settings):
  """Returns what turns durations into steps."""
  workload = workloads.get(settings.workload, settings.preset)
  return Timeline(
    batch_size=settings.batch_size,
    fresh_examples=workload.train_examples,
    factor=settings.arm.mean_factor,
  )


def _store(settings):
  """A store to read from, or None."""
  if not settings.is_stored:
    return None
  if settings.store is not None:
    return objects.Own(settings.store)
  return _filled_store(
    settings.workload,
    settings.preset,
    settings.store_ms,
    settings.store_kb_per_second,
  )


@functools.cache
def _filled_store(name, preset, latency_ms, kb_per_second):
  """One for all runs of this process, with which it ends."""
  store = process.start(latency_ms=latency_ms, kb_per_second=kb_per_second)
  store.fill(workloads.get(name, preset))
  return store


def _train(settings, workload, upstream, store, course):
  falling = factor_schedule(settings)
  factor = falling and tfecho.factor_variable(settings.arm.factor)
  batches = feeding.batches(settings, upstream, factor=factor, store=store)
  train(
    workload.model,
    course.watch(batches),
    length=f"{settings.max_steps}ba",
    epoch=f"{min(settings.evaluation_steps, settings.max_steps)}ba",
    timeline=timeline(settings),
    learning_rate=learning_rate(settings),
    loss=workload.loss(),
    callbacks=[
      *([EchoFactorSchedule(factor, falling)] if falling else []),
      course.evaluation,
      course,
      *_stop(settings, workload),
    ],
    seed=settings.seed,
    verbose=0,
    # XLA would compile for longer than a run of a small model takes.
    jit_compile=False,
    **{"optimizer": workload.optimizer, **settings.training.options()},
  )


def _stop(settings, workload):
  """The end of a run for a target."""
  if settings.measure != "target":
    return []
  mode = "max" if workload.maximize else "min"
  return [
    StopAtTarget(
      "val_metric", settings.targets[-1], mean_of=curves.WINDOW, mode=mode
    )
  ]


class _Course(keras.callbacks.Callback):
  """What a run was fed with, and how it did.

  Stands behind its `evaluation`.
  """

  def __init__(self, workload, upstream, store, on_evaluation):
    super().__init__()
    self.evaluation = Evaluation(workload)
    self._upstream = upstream
    self._store = store
    self._on_evaluation = on_evaluation
    self._maximize = workload.maximize
    self._log = FeedLog()
    self._fresh = FreshCounter()
    self._step = 0
    self.curve = {column: [] for column in COLUMNS}

  def watch(self, dataset):
    """Returns the batches of a dataset of (ordinals, batch)."""
    return self._log.watch(dataset)

  def on_train_begin(self, logs=None):
    """Forgets the batches that `train` looked at before.

    Evaluates once, off the clock: that traces, and fills caches.
    """
    self._log.clear()
    self._upstream.clear()
    self._fetched_before = self._fetched()
    self.evaluation.of(self.model)

  def on_train_batch_end(self, batch, logs=None):
    """Counts; starts the clock after the first step, which is traced."""
    self._step += 1
    if self._step == 1:
      self._start = time.perf_counter()
      self._waited_before = self._log.wait_seconds

  def on_epoch_end(self, epoch, logs):
    """Keeps what is known at this point."""
    for ordinals in self._log.take(self._step - self._counted_steps):
      self._fresh.update(ordinals)
    row = {
      "step": self._step,
      # The workers of a service keep no count here.
      "read": max(self._upstream.read, self._fresh.consumed),
      "consumed": self._fresh.consumed,
      "trained": self._fresh.trained,
      "seconds": round(time.perf_counter() - self._start, 3),
      "metric": round(self._judged(logs["val_metric"]), 6),
    }
    self._fetched_until = self._fetched()
    for column in COLUMNS:
      self.curve[column].append(row[column])
    self._on_evaluation(self._step, logs["val_metric"])

  def counts(self):
    """Returns the totals of the run, up to its last evaluation."""
    fresh = self._fresh
    return {
      **self._row(-1),
      "emitted": fresh.emitted,
      "distinct_share": round(fresh.distinct_share, 4),
      "repeat_distance": fresh.repeat_distance,
      "wait_seconds": round(self._log.wait_seconds - self._waited_before, 3),
      # Until there was a first batch: before the clock was started.
      "first_wait_seconds": round(self._waited_before, 3),
      "evaluation_seconds": round(self.evaluation.seconds, 3),
      **{
        name: count - self._fetched_before[name]
        for name, count in self._fetched_until.items()
      },
    }

  def _judged(self, metric):
    """The metric; as bad as can be where a training that diverged has none."""
    if not math.isnan(metric):
      return metric
    return 0.0 if self._maximize else math.inf

  def _fetched(self):
    """What the store has been asked for, if there is one."""
    return self._store.counts() if self._store else {}

  def _row(self, index):
    return {column: self.curve[column][index] for column in COLUMNS}

  @property
  def _counted_steps(self):
    return self.curve["step"][-1] if self.curve["step"] else 0
