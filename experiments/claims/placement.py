"""Claim 1: no placement costs fresh examples, and earlier is better."""

from __future__ import annotations

from experiments.arms import PLACES, Arm
from experiments.claims.evidence import (
  UNTESTED,
  Tally,
  Verdict,
  needed,
  together,
  where,
)

CLAIM = (
  "Every placement needs at most as many fresh examples as no echo; the "
  "earlier it stands, the fewer"
)


def judge(recorded):
  """Returns the verdict, over all factors and placements of the paper."""
  saves, ordered, found = Tally(), Tally(), []
  for comparison in recorded.to_target:
    seeds = needed(comparison)
    arms = [arm for arm in seeds if arm.is_echo and _is_of_paper(arm)]
    if arms:
      saved, in_order = Tally(), Tally()
      for tally in (saves, saved):
        _count_savings(tally, seeds, arms)
      for tally in (ordered, in_order):
        _count_order(tally, seeds, arms)
      found.append(
        f"to {where(comparison)}: no more than without an echo in {saved}; "
        f"neighbours in order in {in_order}"
      )
  return Verdict(
    CLAIM,
    together(saves, ordered) if ordered.total else UNTESTED,
    "; ".join(found),
    _missing(ordered),
  )


def _missing(ordered):
  if not ordered.total:
    return "two placements in `--arms`, three seeds"
  is_close = 2 * ordered.clear < ordered.total
  return "more `--seeds`, to tell neighbours apart" if is_close else ""


def _count_savings(tally, seeds, arms):
  for arm in arms:
    tally.add(seeds[Arm()], seeds[arm])


def _count_order(tally, seeds, arms):
  """Compares placements that follow one another, at every factor."""
  for factor in sorted({arm.factor for arm in arms}):
    line = [arm for arm in arms if arm.factor == factor]
    line.sort(key=lambda arm: PLACES.index(arm.echo_after))
    for earlier, later in zip(line, line[1:]):
      tally.add(seeds[later], seeds[earlier])


def _is_of_paper(arm):
  """Whether it shuffles as the paper does: examples, but not batches."""
  return arm.kind == f"after_{arm.echo_after}"
