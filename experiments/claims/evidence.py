"""What a claim is judged by: medians over seeds, and how sure they are."""

from __future__ import annotations

import dataclasses
import math

from experiments import intervals, summary
from experiments.arms import Arm
from experiments.seeds import Seeds

HOLDS = "holds"
IN_PART = "holds in part"
FAILS = "does not hold"
UNTESTED = "not testable here"

MIN_SEEDS = 3


@dataclasses.dataclass(frozen=True)
class Recorded:
  """The runs on one workload, made by the same versions.

  Attributes:
    runs: Their records.
    to_target: Comparisons of those to a target.
    final: Comparisons of those to the end of a schedule.
  """

  runs: list
  to_target: list
  final: list

  @property
  def settings(self):
    """Those of the first run: workload and preset are the same for all."""
    return self.runs[0]["settings"]

  @property
  def name(self):
    """What was trained, with what."""
    return (
      f"{self.settings['workload']} {self.settings['preset']}, TensorFlow "
      f"{self.runs[0]['environment'].get('tensorflow')}"
    )

  @property
  def title(self):
    """The same, and how often."""
    return f"{self.name}, {len(self.runs)} runs:"

  def is_of(self, workload):
    """Whether these are runs of a workload at the size of the paper."""
    return (self.settings["workload"], self.settings["preset"]) == (
      workload,
      "paper",
    )


@dataclasses.dataclass(frozen=True)
class Verdict:
  """What the records say about a claim.

  Attributes:
    claim: The claim.
    answer: One of `HOLDS`, `IN_PART`, `FAILS`, `UNTESTED`.
    found: The numbers.
    missing: What would have to be run to test it, or the rest of it.
  """

  claim: str
  answer: str
  found: str = ""
  missing: str = ""


@dataclasses.dataclass
class Tally:
  """Counts comparisons: how many are as claimed, and how many clearly so."""

  right: int = 0
  clear: int = 0
  total: int = 0

  def add(self, larger, smaller):
    """Counts whether one median is at least as large as another, as claimed.

    Args:
      larger: `Seeds` of what should need more.
      smaller: `Seeds` of what should need less.
    """
    if math.isinf(larger.median) and math.isinf(smaller.median):
      return  # neither came: nothing to compare
    low, _ = intervals.of_gain(larger.values, smaller.values)
    self.count(larger.median >= smaller.median, is_clear=low > 1)

  def count(self, is_right, *, is_clear):
    """Counts one comparison."""
    self.total += 1
    self.right += bool(is_right)
    self.clear += bool(is_right and is_clear)

  @property
  def answer(self):
    """What so many comparisons say together."""
    if not self.total:
      return UNTESTED
    if self.right == self.total and 2 * self.clear >= self.total:
      return HOLDS
    return IN_PART if 2 * self.right > self.total else FAILS

  def __str__(self):
    return f"{self.right} of {self.total}, {self.clear} clearly"


def needed(comparison):
  """Returns the fresh examples to the comparison's own target, by arm.

  Args:
    comparison: A `Comparison` of runs to a target.

  Returns:
    A dict from an arm with enough seeds to its `Seeds`; empty without a target
    of which all runs tell, or with too few seeds of the baseline.
  """
  target = told_target(comparison.runs)
  return {} if target is None else _seeds(comparison.runs, target)


def together(*tallies):
  """Returns the answer to a claim of several parts, those that were tested."""
  answers = {tally.answer for tally in tallies} - {UNTESTED}
  if len(answers) > 1:
    return IN_PART
  return answers.pop() if answers else UNTESTED


@dataclasses.dataclass(frozen=True)
class Gain:
  """How often the baseline's median holds that of an arm, 0 if it never came.

  Attributes:
    value: So often.
    interval: Its bootstrap interval.
  """

  value: float
  interval: tuple[float, float]


def gain(seeds, arm):
  """Returns the `Gain` of an arm, from what `needed` returned."""
  baseline, own = seeds[Arm()], seeds[arm]
  interval = intervals.of_gain(baseline.values, own.values)
  return Gain(baseline.median / own.median, interval)


def where(comparison):
  """Returns the target, and in what the comparison differs from others."""
  parts = [f"{told_target(comparison.runs):g}", comparison.name]
  return " with ".join(part for part in parts if part)


def told_target(runs):
  """Returns the hardest target of which all runs tell, None if there is none.

  All seeds of the baseline reach it, and so does every arm, or it has had as
  many fresh examples: runs end after so many steps, and by then an echo has had
  fewer.
  """
  for target in reversed(summary.targets(runs)):
    seeds = _seeds(runs, target)
    baseline = seeds.get(Arm())
    if baseline and not baseline.missed:
      if all(_tells(arm, baseline.median) for arm in seeds.values()):
        return target
  return None


def _tells(seeds, fresh):
  """Whether it is known if a median is more than so many fresh examples."""
  return math.isfinite(seeds.median) or min(seeds.missed) >= fresh


def _seeds(runs, target):
  """What each arm with enough seeds needed; nothing without a baseline."""
  found = {
    arm: Seeds.to_target(runs, target)
    for arm, runs in summary.by_arm(runs).items()
    if len(runs) >= MIN_SEEDS
  }
  return found if Arm() in found else {}
