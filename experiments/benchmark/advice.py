"""What `tfecho.advise` predicts, against what then comes.

    python -m experiments.benchmark --suite=advice

Each pipeline is judged and then trained on, without an echo and with one of
factor 2 and 4 in each place, round by round, so that both see the same machine.
A prediction should come within 30 % of the time that a step really takes, half
of them within 15 %, and what is recommended should be at most 10 % slower than
the fastest choice that was tried.
"""

import fractions
import functools
import statistics
import time

import tfecho
from experiments.benchmark.advice_workloads import WORKLOADS
from experiments.benchmark.runner import Bound, Case, Row

FACTORS = (2, 4)

WORST_ERROR = 0.30
MEDIAN_ERROR = 0.15
BEST = 1.10

ROUNDS = 5
ADVISE_SECONDS = 3.0

# Per choice and round. How the threads of a pipeline come to share the cores
# differs from one iterator to the next, by half where a step takes 1 ms.
_ITERATORS = 3

# Of each: off the clock, until all buffers are as full as they get, and on it.
_WARMUP_SECONDS = 0.2
_MEASURED_SECONDS = 0.2

_NO_ECHO = "no echo"
_RECOMMENDED = "recommended"


def cases():
  """One per pipeline; `summary` has what is claimed of all of them."""
  return [_case(workload) for workload in WORKLOADS]


def summary(rows):
  """Returns the rows that follow from those of the cases.

  The recommended choice against the fastest, by their medians, for each case;
  and of all predictions the median error.
  """
  results = [
    row for workload in WORKLOADS for row in _best(_of(workload, rows))
  ]
  predictions = [row for w in WORKLOADS for row in _predictions(_of(w, rows))]
  if predictions:
    results.append(_median_error(predictions))
  return results


def _case(workload):
  trial = _Trial(workload)
  choices = [_name(*choice) for choice in _choices(workload.places)]
  return Case(
    what=workload.what,
    unit="ms",
    contenders={
      "predicted": lambda: trial.predict,
      "measured": lambda: trial.measure,
    },
    bounds=[
      *(
        Bound(
          f"predicted, {name}", f"measured, {name}", WORST_ERROR, "deviation"
        )
        for name in choices
      ),
      Bound(f"measured, {_RECOMMENDED}", f"measured, {_NO_ECHO}"),
    ],
    max_rounds=ROUNDS,
  )


def _choices(places):
  """Places and factors to try; the first is no echo."""
  return [(None, 1), *((place, e) for place in places for e in FACTORS)]


def _name(place, factor):
  return _NO_ECHO if place is None else f"{place} e={factor:g}"


class _Trial:
  """A pipeline that is judged and trained on in turns."""

  def __init__(self, workload):
    self._workload = workload
    self._recommended = None  # by the latest advice

  def predict(self):
    """Returns the predicted milliseconds per step of every choice."""
    pipeline, step = self._started
    advice = tfecho.advise(pipeline, train_step=step, seconds=ADVISE_SECONDS)
    self._recommended = advice.recommended
    seconds = {(x.echo_after, x.factor): x.step_seconds for x in advice.choices}
    return {
      _name(*choice): 1e3 * seconds[choice]
      for choice in _choices(self._workload.places)
    }

  def measure(self):
    """Returns those that it takes, and of what was recommended last."""
    measured = {
      _name(*choice): self._milliseconds(*choice)
      for choice in _choices(self._workload.places)
    }
    recommended = self._recommended.echo_after, self._recommended.factor
    name = _name(*recommended)
    if name not in measured:
      measured[name] = self._milliseconds(*recommended)
    return {**measured, _RECOMMENDED: measured[name]}

  def _milliseconds(self, place, factor):
    pipeline, step = self._started
    echo = {}
    if place is not None:
      echo = {"echo_after": place, "factor": factor}
    if place not in (None, "batch"):
      # No larger than need be: it has to be full before the clock starts.
      echo["echo_buffer"] = 2 * pipeline.batch_size
    dataset = pipeline.dataset(**echo)
    return statistics.fmean(
      _milliseconds(step, iter(dataset), factor) for _ in range(_ITERATORS)
    )

  @functools.cached_property
  def _started(self):
    return self._workload.start()


def _milliseconds(step, batches, factor):
  """Milliseconds per call of `step`, over whole groups of copies."""
  group = fractions.Fraction(factor).limit_denominator(100).numerator
  _repeat(step, batches, group, _WARMUP_SECONDS)
  start = time.perf_counter()
  steps = _repeat(step, batches, group, _MEASURED_SECONDS)
  return 1e3 * (time.perf_counter() - start) / steps


def _repeat(step, batches, group, seconds):
  """Makes groups of steps, two at least, until time is up; returns how many."""
  steps, end = 0, time.perf_counter() + seconds
  while steps < 2 * group or time.perf_counter() < end:
    for _ in range(group):
      step(next(batches))
    steps += group
  return steps


def _of(workload, rows):
  return [row for row in rows if row.what == workload.what]


def _predictions(rows):
  return [row for row in rows if row.bound.ours.startswith("predicted")]


def _best(rows):
  """The row of what was recommended against the fastest, if it was measured."""
  for row in rows:
    if row.bound.ours == f"measured, {_RECOMMENDED}":
      tried = _predictions(rows)
      best = min(tried, key=lambda row: statistics.median(row.other))
      bound = Bound(_RECOMMENDED, best.bound.other, BEST)
      yield Row(row.what, row.unit, bound, row.ours, best.other)


def _median_error(rows):
  """Half of the predictions are at most so wrong."""
  return Row(
    f"median error of {len(rows)} predictions",
    "1 + error",
    Bound("prediction", "exact", 1 + MEDIAN_ERROR),
    [1 + row.value for row in rows],
    [1.0] * len(rows),
  )
