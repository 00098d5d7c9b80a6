"""Claim 4: a shuffle buffer repairs most of the damage; larger is better."""

from __future__ import annotations

from experiments import intervals, sweeps
from experiments.claims.evidence import (
  MIN_SEEDS,
  Tally,
  Verdict,
  together,
  told_target,
)
from experiments.seeds import Seeds

CLAIM = (
  "A shuffle buffer behind the echo repairs most of the damage; larger is "
  "better"
)
_MOST = 0.5


def judge(recorded):
  """Returns the verdict, over all sizes of the buffer, none being one."""
  repairs, grows, found = Tally(), Tally(), []
  for sweep in sweeps.BUFFERS.of(recorded.to_target):
    runs = [run for comparison in sweep for run in comparison.runs]
    target = told_target(runs)
    for arm, line in _needed(sweep, target).items():
      sizes = list(line)
      for smaller, larger in zip(sizes, sizes[1:]):
        grows.add(line[smaller], line[larger])
      baseline = Seeds.to_target(sweeps.baseline(sweep), target)
      repaired = _repair(repairs, baseline.median / arm.factor, line)
      found.append(f"{arm}: {_shown(line)}{repaired}")
  return Verdict(
    CLAIM,
    together(repairs, grows),
    "; ".join(found),
    "files of two `--echo_buffer`, or `_unshuffled` arms, three seeds"
    if not grows.total
    else "",
  )


def _needed(sweep, target):
  """From an echo to what it needs with every buffer, if there are several."""
  if target is None:
    return {}
  lines = {
    arm: {
      size: Seeds.to_target(some, target)
      for size, some in line.items()
      if len(some) >= MIN_SEEDS
    }
    for arm, line in sweeps.by_buffer(sweep).items()
  }
  return {arm: line for arm, line in lines.items() if len(line) > 1}


def _shown(line):
  return ", ".join(
    f"{seeds.median:,.0f} with {f'{size:,}' if size else 'none'}"
    for size, seeds in line.items()
  )


def _repair(tally, if_fresh, line):
  """Counts whether the largest buffer repairs most, and returns how much.

  Damage is what the echo needs without a shuffle beyond what it would need if
  its copies were fresh examples. A repair is clear if the buffer is worth
  something for sure.
  """
  if 0 not in line:
    return ""
  none, largest = line[0], list(line.values())[-1]
  damage = none.median - if_fresh
  if not 0 < damage < float("inf"):
    return ""
  repaired = (none.median - largest.median) / damage
  low, _ = intervals.of_gain(none.values, largest.values)
  tally.count(repaired > _MOST, is_clear=low > 1)
  return f", which repairs {repaired:.0%} of the damage"
