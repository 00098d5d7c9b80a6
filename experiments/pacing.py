"""How fast training went where nothing but computing slows its input down.

```python
baseline, echo = pacing.rows(finished)
baseline.ratio   # R: input over training
echo.speedup     # wall time to the last target, against the baseline
```
"""

from __future__ import annotations

import dataclasses
import statistics

from experiments import summary
from experiments.arms import Arm
from experiments.seeds import Seeds
from experiments.summary import Spread


@dataclasses.dataclass(frozen=True)
class Pace:
  """That of an arm.

  Attributes:
    arm: The arm.
    training_ms: Time per copy in batches, without waiting and evaluations,
      median.
    waiting: Share of the time between evaluations spent waiting for input,
      median.
    ratio: R, what its input takes per copy over what training takes, as long
      as training waits: else that is not seen, and this is 1.
    seconds: Wall time to the last target, evaluations included, a `Spread`.
    speedup: Median seconds of the baseline over these; None if one of the two
      is unknown.
  """

  arm: Arm
  training_ms: float
  waiting: float
  ratio: float
  seconds: Spread
  speedup: float | None


def rows(finished):
  """Returns a `Pace` per arm, for runs to a target without a delay."""
  by_arm = summary.by_arm(finished)
  return summary.sped_up([_pace(arm, runs) for arm, runs in by_arm.items()])


def _pace(arm, runs):
  counts = [run["counts"] for run in runs]
  waiting = statistics.median(c["wait_seconds"] / _seconds(c) for c in counts)
  training = statistics.median(
    (_seconds(c) - c["wait_seconds"]) / c["emitted"] for c in counts
  )
  target = runs[0]["settings"]["targets"][-1]
  return Pace(
    arm=arm,
    training_ms=1_000 * training,
    waiting=waiting,
    ratio=1 / (1 - waiting),
    seconds=Spread.of(Seeds.to_target(runs, target, column="seconds").values),
    speedup=None,
  )


def _seconds(counts):
  """Between evaluations, which records of earlier runs do not tell apart."""
  return counts["seconds"] - counts.get("evaluation_seconds", 0.0)
