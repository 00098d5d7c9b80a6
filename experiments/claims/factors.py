"""Claim 5: gains grow with the factor, up to a limit."""

from __future__ import annotations

from experiments.arms import Arm
from experiments.claims.evidence import (
  HOLDS,
  IN_PART,
  UNTESTED,
  Tally,
  Verdict,
  gain,
  needed,
)

CLAIM = (
  "Gains grow with the echoing factor, up to a limit that depends on the "
  "workload"
)


def judge(recorded):
  """Returns the verdict: in part if no limit, or no growth, was seen."""
  tally, found, limits, growths = Tally(), [], 0, 0
  for comparison in recorded.to_target:
    for kind, seeds, line in _lines(comparison):
      peak = _peak(seeds, line)
      for fewer, more in zip(line, line[1 : line.index(peak) + 1]):
        tally.add(seeds[fewer], seeds[more])
      if peak == Arm():
        tally.count(False, is_clear=False)  # no gain at any factor
      limits += peak != line[-1]
      growths += line.index(peak) > 1  # from one echo to the next
      found.append(_shown(kind, seeds, line, peak, comparison))
  answer = tally.answer
  return Verdict(
    CLAIM,
    IN_PART if answer == HOLDS and not (limits and growths) else answer,
    "; ".join(found),
    _missing(answer, limits),
  )


def _missing(answer, limits):
  if answer == UNTESTED:
    return "two values of `--factors`, three seeds"
  more = "" if limits else "larger `--factors`, to see the limit; "
  return f"{more}another workload, to see it depend on that"


def _lines(comparison):
  """Kinds of echo with two factors or more, the baseline being factor 1."""
  seeds = needed(comparison)
  for kind in dict.fromkeys(arm.kind for arm in seeds if arm.is_echo):
    arms = sorted((a for a in seeds if a.kind == kind), key=lambda a: a.factor)
    if len(arms) > 1:
      yield kind, seeds, [Arm(), *arms]


def _peak(seeds, line):
  """The arm that needs least, and the last of several."""
  return min(reversed(line), key=lambda arm: seeds[arm].median)


def _shown(kind, seeds, line, peak, comparison):
  gains = ", ".join(f"{gain(seeds, arm).value:.3g}x" for arm in line[1:])
  at = ", ".join(f"{arm.factor:g}" for arm in line[1:])
  limit = f", no more beyond {peak.factor:g}" if peak != line[-1] else ""
  condition = f" with {comparison.name}" if comparison.name else ""
  return f"{kind}{condition}: {gains} at e = {at}{limit}"
