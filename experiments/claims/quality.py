"""Claim 6: with an echo, training ends as good as without."""

from __future__ import annotations

from experiments import summary
from experiments.arms import Arm
from experiments.claims.evidence import MIN_SEEDS, Tally, Verdict

CLAIM = "The final quality is that of training without an echo"


def judge(recorded):
  """Returns the verdict over all runs to the end of a schedule.

  As good means here: no worse by the median than the worst seed without an
  echo, over as many steps and under the same schedule. That leaves out the
  spread of the seeds already, so that all that count do so clearly.
  """
  tally, found = Tally(), []
  for comparison in recorded.final:
    rows = summary.final(comparison.runs)
    for is_per_epoch in (False, True):
      some = [
        row
        for row in rows
        if row.is_per_epoch == is_per_epoch
        and row.runs >= MIN_SEEDS
        and not row.arm.cached
      ]
      found += _count(tally, some, comparison)
  return Verdict(
    CLAIM,
    tally.answer,
    "; ".join(found),
    "" if tally.total else "`--measure=final`, three seeds",
  )


def _count(tally, rows, comparison):
  """Counts the arms of a schedule; returns what to say of them."""
  (baseline, *echoes) = rows if rows and rows[0].arm == Arm() else (None,)
  if not echoes:
    return []
  sign = 1 if comparison.runs[0]["metric"]["maximize"] else -1
  worst = min(sign * value for value in baseline.metrics)
  worse = [row for row in echoes if sign * row.metric.median < worst]
  for row in echoes:
    tally.count(row not in worse, is_clear=row not in worse)
  names = ", ".join(f"{row.name} {row.metric.median:.3f}" for row in worse)
  return [
    f"{len(echoes) - len(worse)} of {len(echoes)} echoes end no worse than the "
    f"worst seed of {baseline.name}, {sign * worst:.3f} after "
    f"{baseline.steps:,} steps" + (f"; worse: {names}" if worse else "")
  ]
