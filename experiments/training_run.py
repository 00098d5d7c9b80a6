"""One training run, from its settings to what it measured.

```python
result = run(settings)
result["curve"]["consumed"]      # fresh examples, at every evaluation
result["to_target"]["0.99"]      # the same where the target was reached
```
"""

from __future__ import annotations

import functools
import time

import numpy as np

import tfecho
from experiments import curves, feeding, workloads
from experiments.counting import FreshCounter
from experiments.trainer import Trainer
from experiments.upstream import Upstream
from tfecho.training import Timeline, schedules

# Examples for which upstream keeps a pace that it has drawn: several batches,
# since jitter within a batch evens out before anyone waits for it.
_SPELL = 256

# What is known at each evaluation, one list each; seconds include evaluations.
COLUMNS = ("step", "read", "consumed", "trained", "seconds", "metric")


def run(settings, *, on_evaluation=lambda step, metric: None):
  """Trains once.

  Args:
    settings: `RunSettings`.
    on_evaluation: Called with the step and the metric at every evaluation.

  Returns:
    A dict that JSON can hold: `metric`, its name and direction, `counts` of the
    whole run, `to_target` from each target to the columns of the `curve` where
    it counts as reached, or None, and `curve` (see `COLUMNS`).
  """
  return _Run(settings, on_evaluation).result()


def learning_rates(settings):
  """Returns the learning rate of every step."""
  if settings.measure == "target":
    rate = schedules.constant(settings.learning_rate)
  else:
    rate = schedules.cosine(
      settings.learning_rate,
      f"{settings.max_steps}ba",
      resolution=settings.schedule_resolution,
    ).on(_timeline(settings))
  return _at_every_step(settings, rate)


def factors(settings):
  """Returns the echoing factor at every step, or None if it stays the same."""
  arm, total = settings.arm, f"{settings.max_steps}ba"
  if arm.last_factor is None:
    return None
  falling = schedules.linear(arm.factor, total, end=arm.last_factor)
  return _at_every_step(settings, falling)


def _at_every_step(settings, schedule):
  """Computed once: a call takes as long as a small training step."""
  return schedule(np.arange(settings.max_steps)).numpy().tolist()


def _timeline(settings):
  workload = workloads.get(settings.workload, settings.preset)
  return Timeline(
    batch_size=settings.batch_size,
    fresh_examples=workload.train_examples,
    factor=settings.arm.mean_factor,
  )


@functools.lru_cache(maxsize=1)
def trainer(workload, preset):
  """Returns the `Trainer` that all runs of a workload in a process share."""
  return Trainer(workloads.get(workload, preset))


class _Run:
  """The state of a run: what it has seen, and how it did."""

  def __init__(self, settings, on_evaluation):
    self._settings = settings
    self._on_evaluation = on_evaluation
    self._workload = workloads.get(settings.workload, settings.preset)
    self._trainer = trainer(settings.workload, settings.preset)
    self._upstream = Upstream(
      settings.upstream_ms / 1_000,
      jitter=settings.upstream_jitter,
      spell=_SPELL,
      seed=settings.seed,
    )
    self._rates = learning_rates(settings)
    self._factors = factors(settings)
    self._fresh = FreshCounter()
    self._waited = 0.0
    self._curve = {column: [] for column in COLUMNS}

  def result(self):
    self._trainer.reset(self._settings.seed)
    self._start = time.perf_counter()
    self._train()
    return {
      "metric": {
        "name": self._workload.metric_name,
        "maximize": self._workload.maximize,
      },
      "counts": self._counts(),
      "to_target": {
        f"{target:g}": self._row(self._reached(target))
        for target in self._settings.targets
      },
      "curve": self._curve,
    }

  def _train(self):
    settings = self._settings
    factor = self._factors and tfecho.factor_variable(self._factors[0])
    batches = iter(feeding.batches(settings, self._upstream, factor=factor))
    for step, rate in enumerate(self._rates, 1):
      if factor is not None:
        factor.assign(self._factors[step - 1])
      ordinals, (inputs, labels) = self._next(batches)
      self._trainer.train(inputs, labels, rate)
      self._fresh.update(ordinals.numpy())
      if step % settings.evaluation_steps == 0 or step == settings.max_steps:
        self._evaluate(step)
        if settings.measure == "target" and self._is_done():
          return

  def _next(self, batches):
    start = time.perf_counter()
    batch = next(batches)
    self._waited += time.perf_counter() - start
    return batch

  def _evaluate(self, step):
    metric = self._trainer.evaluate()
    row = {
      "step": step,
      "read": self._upstream.read,
      "consumed": self._fresh.consumed,
      "trained": self._fresh.trained,
      "seconds": round(time.perf_counter() - self._start, 3),
      "metric": round(metric, 6),
    }
    for column in COLUMNS:
      self._curve[column].append(row[column])
    self._on_evaluation(step, metric)

  def _is_done(self):
    return self._reached(self._settings.targets[-1]) is not None

  def _reached(self, target):
    maximize = self._workload.maximize
    return curves.reached(self._curve["metric"], target, maximize=maximize)

  def _row(self, index):
    if index is None:
      return None
    return {column: self._curve[column][index] for column in COLUMNS}

  def _counts(self):
    """Totals of the run, up to its last evaluation."""
    fresh = self._fresh
    return {
      **self._row(-1),
      "emitted": fresh.emitted,
      "distinct_share": round(fresh.distinct_share, 4),
      "repeat_distance": fresh.repeat_distance,
      "wait_seconds": round(self._waited, 3),
    }
