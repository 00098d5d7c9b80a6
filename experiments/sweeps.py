"""Comparisons that differ in one condition: the batch size, or the buffer.

```python
for sweep in BUFFERS.of(split(finished, "target")):
  by_buffer(sweep)   # an echo's runs by the size of its shuffle buffer
  baseline(sweep)    # which has none
```
"""

from __future__ import annotations

import collections
import dataclasses

from absl import logging

from experiments import comparisons, summary
from experiments.arms import Arm


@dataclasses.dataclass(frozen=True)
class Sweep:
  """A condition that comparisons may differ in.

  Attributes:
    over: Its name.
    following: Names of others that may change with it, one value for each.
  """

  over: str
  following: tuple[str, ...] = ()

  def of(self, compared):
    """Returns lists of comparisons that differ in it only, sorted by it.

    A list of one is a comparison that no other goes with.

    Args:
      compared: What `comparisons.split` returned.
    """
    groups = collections.defaultdict(list)
    for comparison in compared:
      groups[comparisons.without(comparison, self.names)].append(comparison)
    return [sweep for group in groups.values() for sweep in self._sorted(group)]

  @property
  def names(self):
    """The names of all conditions that change."""
    return (self.over, *self.following)

  def _sorted(self, group):
    values = [comparison.conditions[self.over] for comparison in group]
    if len(set(values)) == len(values):
      return [sorted(group, key=lambda c: c.conditions[self.over])]
    # Which of them to take, nobody can say.
    logging.warning(
      "no sweep over %s: runs of one value differ in %s",
      self.over,
      ", ".join(comparisons.differing([c.conditions for c in group])),
    )
    return [[comparison] for comparison in group]


# A larger batch needs fewer, longer steps, and can reach further.
BATCH_SIZES = Sweep("batch_size", ("targets", "max_steps", "evaluation_steps"))
BUFFERS = Sweep(comparisons.BUFFER)


def by_buffer(sweep):
  """Returns the runs of every shuffled echo by the size of its buffer.

  Args:
    sweep: List of comparisons that differ in their shuffle buffer.

  Returns:
    A dict from an arm to a dict from the size to its runs; size 0 has those of
    the arm without a shuffle. They do not depend on the size, so that of each
    seed the first counts.
  """
  found = collections.defaultdict(lambda: collections.defaultdict(list))
  for comparison in sweep:
    for arm, runs in summary.by_arm(comparison.runs).items():
      if arm.is_echo:
        size = comparison.conditions[BUFFERS.over] if arm.shuffle else 0
        found[dataclasses.replace(arm, shuffle=True)][size] += runs
  return {
    arm: {size: _once(runs) for size, runs in sorted(line.items())}
    for arm, line in found.items()
  }


def baseline(sweep):
  """Returns the baseline's runs, of each seed the first: it has no buffer."""
  runs = [run for comparison in sweep for run in comparison.runs]
  return _once(summary.by_arm(runs).get(Arm(), []))


def _once(runs):
  """The first run of each seed."""
  seeds = [run["settings"]["seed"] for run in runs]
  return [run for i, run in enumerate(runs) if seeds[i] not in seeds[:i]]
