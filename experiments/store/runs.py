"""What runs that read from a store have fetched, and how long they took."""

from __future__ import annotations

import dataclasses
import math
import statistics

from experiments import records, summary
from experiments.arms import Arm
from experiments.summary import Spread


@dataclasses.dataclass(frozen=True)
class Stored:
  """Runs of an arm that read from an object store.

  Times include that until the first batch is there, in which echoes and caches
  fill their buffers.

  Attributes:
    arm: The arm.
    runs: Number of runs.
    reached: How many of them reached the target.
    store: URL of a store that was not started for the runs, or None.
    store_ms: From a request to its answer, as declared; None if it was not.
    store_kb_per_second: Bandwidth, as declared; None for no limit.
    consumed: Fresh examples that the whole run consumed, a `Spread`.
    requests: How often the store was asked for an object, a `Spread`; None if
      nobody has counted that.
    kilobytes: What it has sent, a `Spread`; None likewise.
    copies: Examples in batches per one that was read, median.
    waiting: Share of the time spent waiting for input, median.
    seconds: Wall time to the target, a `Spread`.
    speedup: Median seconds of the baseline over these; None if one of the two
      is unknown.
  """

  arm: Arm
  runs: int
  reached: int
  store: str | None
  store_ms: float | None
  store_kb_per_second: float | None
  consumed: Spread
  requests: Spread | None
  kilobytes: Spread | None
  copies: float
  waiting: float
  seconds: Spread
  speedup: float | None


def summarize(finished):
  """Returns a `Stored` per store and arm, in this order."""
  groups = {}
  for run in summary.in_order(finished):
    settings = records.settings_of(run)
    if settings.is_stored:
      store = (
        settings.store or "",
        settings.store_ms or 0.0,
        settings.store_kb_per_second or math.inf,
      )
      arms = groups.setdefault(store, {})
      arms.setdefault(settings.arm, []).append(run)
  return [row for _, arms in sorted(groups.items()) for row in _stored(arms)]


def _stored(runs_of):
  """The rows of one store, from a dict of runs by arm."""
  rows = [_stored_arm(arm, runs) for arm, runs in runs_of.items()]
  return summary.sped_up(rows)


def _stored_arm(arm, runs):
  settings = records.settings_of(runs[0])
  counts = [run["counts"] for run in runs]
  seeds = summary.seconds_to_last_target(runs)
  return Stored(
    arm=arm,
    runs=len(runs),
    reached=len(seeds.reached),
    store=settings.store,
    store_ms=settings.store_ms,
    store_kb_per_second=settings.store_kb_per_second,
    consumed=Spread.of([c["consumed"] for c in counts]),
    requests=_counted(counts, "requests"),
    kilobytes=_counted(counts, "bytes", per=1_000),
    copies=statistics.median(c["emitted"] / c["trained"] for c in counts),
    waiting=summary.waiting(runs),
    seconds=Spread.of(seeds.values),
    speedup=None,
  )


def _counted(counts, name, *, per=1):
  """What the store says of itself, if it does."""
  if not all(name in count for count in counts):
    return None
  return Spread.of([count[name] / per for count in counts])
