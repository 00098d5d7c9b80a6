"""Claim 4: a shuffle buffer repairs most of the damage; larger is better."""

from __future__ import annotations

from experiments import comparisons, summary
from experiments.arms import Arm
from experiments.claims.evidence import (
  MIN_SEEDS,
  Tally,
  Verdict,
  together,
  told_target,
)
from experiments.figures import buffers
from experiments.seeds import Seeds

CLAIM = (
  "A shuffle buffer behind the echo repairs most of the damage; larger is "
  "better"
)
_MOST = 0.5


def judge(recorded):
  """Returns the verdict, over all sizes of the buffer, none being one."""
  repairs, grows, found = Tally(), Tally(), []
  for sweep in comparisons.sweeps(recorded.to_target, buffers.OVER):
    runs = [run for comparison in sweep for run in comparison.runs]
    for arm, line in _needed(sweep, runs).items():
      sizes = list(line)
      for smaller, larger in zip(sizes, sizes[1:]):
        grows.add(line[smaller], line[larger])
      found.append(f"{arm}: {_shown(line)}{_repair(repairs, arm, line, runs)}")
  return Verdict(
    CLAIM,
    together(repairs, grows),
    "; ".join(found),
    "files of two `--echo_buffer`, or `_unshuffled` arms, three seeds"
    if not grows.total
    else "",
  )


def _needed(sweep, runs):
  """From an echo to what it needs with every buffer, if there are several."""
  target = told_target(runs)
  if target is None:
    return {}
  lines = {
    arm: {
      size: Seeds.to_target(some, target)
      for size, some in line.items()
      if len(some) >= MIN_SEEDS
    }
    for arm, line in buffers.by_size(sweep).items()
  }
  return {arm: line for arm, line in lines.items() if len(line) > 1}


def _shown(line):
  return ", ".join(
    f"{seeds.median:,.0f} with {f'{size:,}' if size else 'none'}"
    for size, seeds in line.items()
  )


def _repair(tally, arm, line, runs):
  """Counts whether the largest buffer repairs most, and returns how much.

  Damage is what the echo needs without a shuffle beyond what it would need if
  its copies were fresh examples.
  """
  if 0 not in line:
    return ""
  baseline = Seeds.to_target(summary.by_arm(runs)[Arm()], told_target(runs))
  damage = line[0].median - baseline.median / arm.factor
  if not 0 < damage < float("inf"):
    return ""
  repaired = (line[0].median - list(line.values())[-1].median) / damage
  tally.count(repaired > _MOST, is_clear=repaired > _MOST)
  return f", which repairs {repaired:.0%} of the damage"
