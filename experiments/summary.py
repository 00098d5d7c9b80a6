"""From the records of runs to what they say: medians, spreads, comparisons.

Plain numbers, no formatting; `report` and `figures` show them.
"""

from __future__ import annotations

import dataclasses
import statistics

from experiments import curves, records, timing, workloads
from experiments.arms import PLACES, Arm
from experiments.seeds import NEVER, Seeds


@dataclasses.dataclass(frozen=True)
class Spread:
  """Median, smallest and largest value over the seeds; `NEVER` counts."""

  median: float
  low: float
  high: float

  @classmethod
  def of(cls, values):
    return cls(statistics.median(values), min(values), max(values))


@dataclasses.dataclass(frozen=True)
class ToTarget:
  """What an arm needed to reach a target.

  Attributes:
    arm: The arm.
    runs: Number of runs.
    reached: How many of them reached the target.
    read: Fresh examples read from upstream, a `Spread`.
    consumed: Fresh examples that the training asked for, a `Spread`.
    steps: Training steps, a `Spread`.
    seconds: Wall time, evaluations included, a `Spread`.
    gain: How often the baseline's median of `consumed` holds this arm's; None
      if one of the two is unknown.
    best: Best value of the metric in any of the runs.
    distinct_share: Distinct fresh examples in a batch over its size, mean.
    repeat_distance: Emitted examples from a copy to the next one, mean; None
      without copies.
  """

  arm: Arm
  runs: int
  reached: int
  read: Spread
  consumed: Spread
  steps: Spread
  seconds: Spread
  gain: float | None
  best: float
  distinct_share: float
  repeat_distance: float | None


@dataclasses.dataclass(frozen=True)
class Final:
  """The metric that an arm ended with.

  Attributes:
    arm: The arm.
    is_per_epoch: Whether its rate fell once an epoch only.
    metrics: Its last value, of every run.
    consumed: Fresh examples that the training asked for, a `Spread`.
    steps: Training steps.
  """

  arm: Arm
  is_per_epoch: bool
  metrics: tuple[float, ...]
  consumed: Spread
  steps: int

  @property
  def name(self):
    """The arm, and its schedule if that is not the usual one."""
    return f"{self.arm}, rate per epoch" if self.is_per_epoch else str(self.arm)

  @property
  def metric(self):
    """The spread of the metric."""
    return Spread.of(self.metrics)

  @property
  def runs(self):
    """How many there are."""
    return len(self.metrics)


@dataclasses.dataclass(frozen=True)
class Timed:
  """Runs of an arm with a slow upstream against the time model.

  Attributes:
    arm: The arm.
    runs: Number of runs.
    reached: How many of them reached the target.
    upstream_ms: Upstream's time per fresh example, as declared.
    upstream_jitter: Standard deviation of it over its mean, as declared.
    downstream_ms: Time per copy from batch to batch, waiting excluded, median.
    ratio: The first over the last of these, R.
    consumed: Fresh examples to the target, or of a whole run, a `Spread`.
    copies: Examples in batches per fresh one among them, median.
    waiting: Share of the time spent waiting for input, median.
    seeds: Wall time to the target of every run, `Seeds`.
    seconds: The same as a `Spread`.
    expected_seconds: What the time model says for as many fresh examples,
      median.
    speedup: Median seconds of the baseline over these; None if one of the two
      is unknown.
    expected_speedup: The same if copies were worth as much as fresh examples.
  """

  arm: Arm
  runs: int
  reached: int
  upstream_ms: float
  upstream_jitter: float
  downstream_ms: float
  ratio: float
  consumed: Spread
  copies: float
  waiting: float
  seeds: Seeds
  seconds: Spread
  expected_seconds: float
  speedup: float | None
  expected_speedup: float


def to_target(finished, target):
  """Returns a `ToTarget` per arm, for runs with a fast upstream."""
  groups = by_arm(finished)
  rows = [_to_target(arm, runs, target) for arm, runs in groups.items()]
  return [dataclasses.replace(row, gain=_gain(row, rows)) for row in rows]


def by_arm(finished):
  """Returns the runs to a target of each arm, with a fast upstream, by it."""
  return _groups(finished, lambda settings: settings.arm, measure="target")


def final(finished):
  """Returns a `Final` per arm and schedule."""
  groups = _groups(
    finished, lambda run: (run.arm, run.is_per_epoch), measure="final"
  )
  return [
    Final(
      arm=arm,
      is_per_epoch=is_per_epoch,
      metrics=tuple(run["counts"]["metric"] for run in runs),
      consumed=Spread.of([run["counts"]["consumed"] for run in runs]),
      steps=runs[0]["counts"]["step"],
    )
    for (arm, is_per_epoch), runs in groups.items()
  ]


def timed(finished):
  """Returns a `Timed` per slow upstream and arm, in this order."""
  groups = {}
  for run in in_order(finished):
    settings = records.settings_of(run)
    if settings.upstream_ms:  # A store's is not known in advance.
      upstream = settings.upstream_ms, settings.upstream_jitter
      arms = groups.setdefault(upstream, {})
      arms.setdefault(settings.arm, []).append(run)
  return [row for _, arms in sorted(groups.items()) for row in _timed(arms)]


def targets(finished):
  """Returns all targets, from easy to hard, of runs with a fast upstream."""
  groups = by_arm(finished)
  runs = [run for runs in groups.values() for run in runs]
  return runs[0]["settings"]["targets"] if runs else []


def own_target(finished):
  """Returns the hardest target that every baseline run reaches, or None."""
  baseline = by_arm(finished).get(Arm(), [])
  for target in reversed(targets(finished)):
    if baseline and not Seeds.to_target(baseline, target).missed:
      return target
  return None


def shown_target(finished):
  """Returns the target of a figure that has one.

  The hardest whose baseline has a median, and the last if none has.
  """
  baseline = by_arm(finished).get(Arm(), [])
  *_, last = targets(finished)
  for target in reversed(targets(finished)):
    if baseline and Seeds.to_target(baseline, target).median < NEVER:
      return target
  return last


def order(settings):
  """Returns a sort key: how far down the echo stands, then its factor."""
  arm = settings.arm
  place = PLACES.index(arm.echo_after) + 1 if arm.echo_after else 0
  changes = (arm.last_factor or arm.factor, settings.is_per_epoch)
  return place, arm.kind, arm.factor, changes, settings.seed


def in_order(runs):
  """Returns runs by arm, then by seed."""
  return sorted(runs, key=lambda run: order(records.settings_of(run)))


def sped_up(rows):
  """Returns rows, each with how much faster it is than that of the baseline."""
  baseline = [row.seconds.median for row in rows if row.arm == Arm()]
  return [
    dataclasses.replace(row, speedup=baseline[0] / row.seconds.median)
    if baseline and NEVER not in (baseline[0], row.seconds.median)
    else row
    for row in rows
  ]


def seconds_to_last_target(runs):
  """Returns the wall time of runs behind a slow upstream, as `Seeds`.

  That until the first batch is there included: in it echoes fill their buffers.
  """
  target = runs[0]["settings"]["targets"][-1]
  seeds = Seeds.to_target(runs, target, column="seconds")
  before = [_first_wait(run) for run in runs]
  return Seeds(
    tuple(value + first for value, first in zip(seeds.values, before)),
    tuple(end + first for end, first in zip(seeds.ends, before)),
  )


def waiting(runs):
  """Returns the share of that time spent waiting for input, median."""
  return statistics.median(
    (run["counts"]["wait_seconds"] + _first_wait(run))
    / (run["counts"]["seconds"] + _first_wait(run))
    for run in runs
  )


def metric_name(finished):
  """Returns what the metric is called."""
  return finished[0]["metric"]["name"]


def descriptions(finished):
  """Returns what was trained on what, in half a line per workload."""
  trained = [records.settings_of(run) for run in finished]
  names = {(r.workload, r.preset, r.augmentation): None for r in trained}
  return [
    workloads.get(name, preset, augmentation=extra).description
    for name, preset, extra in names
  ]


def line(record):
  """Returns how a run went, in one line."""
  settings = records.settings_of(record)
  counts = record["counts"]
  row = curves.reached(record, settings.targets[-1])
  if settings.measure == "final":
    outcome = f"{counts['metric']:.3f} after"
    row = counts
  elif row is None:
    outcome = f"{settings.targets[-1]:g} not reached after"
    row = counts
  else:
    outcome = f"{settings.targets[-1]:g} reached after"
  return (
    f"{settings}: {outcome} {row['consumed']:,.0f} fresh examples, "
    f"{row['step']:,.0f} steps, {row['seconds']:.1f} s"
  )


def _to_target(arm, runs, target):
  read, consumed, steps, seconds = (
    Seeds.to_target(runs, target, column=column)
    for column in ("read", "consumed", "step", "seconds")
  )
  return ToTarget(
    arm=arm,
    runs=len(runs),
    reached=len(consumed.reached),
    read=Spread.of(read.values),
    consumed=Spread.of(consumed.values),
    steps=Spread.of(steps.values),
    seconds=Spread.of(seconds.values),
    gain=None,
    best=_best([m for run in runs for m in run["curve"]["metric"]], runs[0]),
    distinct_share=statistics.fmean(
      run["counts"]["distinct_share"] for run in runs
    ),
    repeat_distance=_mean([run["counts"]["repeat_distance"] for run in runs]),
  )


def _mean(values):
  return None if None in values else statistics.fmean(values)


def _best(values, run):
  return max(values) if run["metric"]["maximize"] else min(values)


def _gain(row, rows):
  baseline = [r.consumed.median for r in rows if r.arm == Arm()]
  if not baseline or NEVER in (row.consumed.median, baseline[0]):
    return None
  return baseline[0] / row.consumed.median


def _timed(runs_of):
  """The rows of one upstream, from a dict of runs by arm."""
  return sped_up([_timed_arm(arm, runs) for arm, runs in runs_of.items()])


def _timed_arm(arm, runs):
  settings = records.settings_of(runs[0])
  upstream = settings.upstream_ms / 1_000
  counts = [run["counts"] for run in runs]
  downstream = statistics.median(_seconds_per_copy(c) for c in counts)
  ratio = upstream / downstream
  copies = statistics.median(c["emitted"] / c["trained"] for c in counts)
  factor = copies if arm.cached else arm.factor
  per_example = timing.seconds_per_fresh_example(
    # On stall, as many copies as fit into the time of a fresh example.
    timing.speedup(factor, ratio=ratio) if arm.on_stall else factor,
    upstream=upstream,
    downstream=downstream,
  )
  seeds = seconds_to_last_target(runs)
  fresh = Seeds.to_target(runs, settings.targets[-1])
  consumed = Spread.of(list(map(min, fresh.values, fresh.ends)))
  return Timed(
    arm=arm,
    runs=len(runs),
    reached=len(seeds.reached),
    upstream_ms=settings.upstream_ms,
    upstream_jitter=settings.upstream_jitter,
    downstream_ms=1_000 * downstream,
    ratio=ratio,
    consumed=consumed,
    copies=copies,
    waiting=waiting(runs),
    seeds=seeds,
    seconds=Spread.of(seeds.values),
    expected_seconds=consumed.median * per_example,
    speedup=None,
    expected_speedup=timing.speedup(factor, ratio=ratio),
  )


def _first_wait(run):
  """Until there was a batch; the clock of earlier runs has it already."""
  return run["counts"].get("first_wait_seconds", 0.0)


def _seconds_per_copy(counts):
  return (counts["seconds"] - counts["wait_seconds"]) / counts["emitted"]


def _groups(finished, key, *, measure):
  """Groups runs with a fast upstream by a key of their settings, in `order`."""
  runs = [
    run
    for run in finished
    if run["settings"]["measure"] == measure
    and records.settings_of(run).is_fast
  ]
  groups = {}
  for run in in_order(runs):
    groups.setdefault(key(records.settings_of(run)), []).append(run)
  return groups
