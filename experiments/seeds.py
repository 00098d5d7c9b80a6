"""One value for every run of an arm: what figures show and rules judge.

```python
seeds = Seeds.to_target(runs, 0.99)
seeds.median, seeds.interval
```
"""

from __future__ import annotations

import dataclasses
import functools
import math
import statistics

from experiments import curves, intervals

# Seeds to tune with count from here, those of comparisons from 0 and not so
# far: a rate must not be judged by the seeds that it was chosen for.
FIRST_TUNING_SEED = 1_000

NEVER = math.inf  # fresh examples, steps, seconds to a target not reached


@dataclasses.dataclass(frozen=True)
class Seeds:
  """One value per run; `NEVER` where it did not come.

  Attributes:
    values: The values.
    ends: What each run had come to at its end: a value that never came is
      larger.
  """

  values: tuple[float, ...]
  ends: tuple[float, ...]

  @classmethod
  def of(cls, values):
    """Values of which each is known."""
    return cls(tuple(values), tuple(values))

  @classmethod
  def to_target(cls, runs, target, *, column="consumed"):
    """What each run needed to a target, none harder than it was set."""
    rows = [curves.reached(run, target) for run in runs]
    return cls(
      tuple(row[column] if row else NEVER for row in rows),
      tuple(run["counts"][column] for run in runs),
    )

  @property
  def median(self):
    """The median, `NEVER` if it did not come."""
    return statistics.median(self.values)

  @property
  def reached(self):
    """The values that came."""
    return [value for value in self.values if math.isfinite(value)]

  @property
  def missed(self):
    """Where those runs ended whose value did not come."""
    pairs = zip(self.values, self.ends)
    return [end for value, end in pairs if not math.isfinite(value)]

  @functools.cached_property
  def interval(self):
    """Bounds of the median, cut where runs ended; None if there are none."""
    low, high = intervals.of_median(self.values)
    if not math.isfinite(low):
      return None
    return low, min(high, max(self.ends))
