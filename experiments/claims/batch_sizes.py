"""Claim 3: larger batches let batch echo do better."""

from __future__ import annotations

from experiments.claims.evidence import Tally, Verdict, gain, needed
from experiments.sweeps import BATCH_SIZES

CLAIM = "Larger batches let batch echo do better"


def judge(recorded):
  """Returns the verdict, each batch size held to its own baseline's target."""
  tally, found = Tally(), []
  for sweep in BATCH_SIZES.of(recorded.to_target):
    for arm, gains in _gains(sweep).items():
      sizes = list(gains)
      for smaller, larger in zip(sizes, sizes[1:]):
        _count(tally, gains[smaller], gains[larger])
      line = ", ".join(f"{g.value:.3g}x at {size}" for size, g in gains.items())
      found.append(f"{arm}: gains {line}")
  return Verdict(
    CLAIM,
    tally.answer,
    "; ".join(found),
    "" if tally.total else "files of two `--batch_size`, three seeds",
  )


def _gains(sweep):
  """From each echo of batches to its gain by batch size, if at several."""
  found = {}
  for comparison in sweep:
    seeds = needed(comparison)
    for arm in seeds:
      if arm.echo_after == "batch":
        size = comparison.conditions[BATCH_SIZES.over]
        found.setdefault(arm, {})[size] = gain(seeds, arm)
  return {arm: gains for arm, gains in found.items() if len(gains) > 1}


def _count(tally, smaller, larger):
  """Clear is a difference whose intervals do not overlap."""
  is_clear = larger.interval[0] > smaller.interval[1]
  tally.count(larger.value >= smaller.value, is_clear=is_clear)
