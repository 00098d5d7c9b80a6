"""Where a run has reached a target, read from its evaluations.

```python
reached(record, 0.99)["consumed"]  # fresh examples; None if it never was
best([0.96, 0.98, 0.97, 0.99])     # 0.98
```
"""

import math

WINDOW = 3  # evaluations; a single one crosses a target by luck
_BESIDE = WINDOW // 2  # on either side of the middle of a window


def reached(run, target):
  """Returns where a run reached a target.

  The mean of `WINDOW` evaluations stands for the one in their middle. A target
  is reached between the first that is at least as good and the one before it,
  in proportion: evaluations are so many steps apart, which with an echo are
  fewer fresh examples than without, and whoever counted to the next one, or to
  the last of those in the mean, would count more for the baseline.

  Args:
    run: Its record.
    target: What the mean has to reach.

  Returns:
    A dict of what its `curve` has a list of: the numbers where it was reached.
    None if it was not.
  """
  sign = 1 if run["metric"]["maximize"] else -1
  smoothed = {name: middles(values) for name, values in run["curve"].items()}
  smoothed["metric"] = means(run["curve"]["metric"])
  for index, mean in enumerate(smoothed["metric"]):
    # Means of decimal fractions: 0.99 three times must count as 0.99.
    if sign * (mean - target) >= -1e-9:
      return _crossing(smoothed, target, index)
  return None


def best(values, *, maximize=True):
  """Returns the hardest target that these values reach, or None.

  Args:
    values: The metric at every evaluation, in order.
    maximize: Whether a larger metric is a better one.
  """
  choose = max if maximize else min
  return choose(means(values), default=None)


def means(values):
  """Returns the means of `WINDOW` values in a row, fewer by `WINDOW - 1`."""
  return [
    sum(values[last - WINDOW : last]) / WINDOW
    for last in range(WINDOW, len(values) + 1)
  ]


def middles(values):
  """Returns the values that those means stand for."""
  return values[_BESIDE : len(values) - _BESIDE]


def _crossing(curve, target, index):
  """The numbers at the target: those of a point, or between it and the last."""
  after = {name: values[index] for name, values in curve.items()}
  if index == 0:
    return after
  before = {name: values[index - 1] for name, values in curve.items()}
  if not math.isfinite(before["metric"]):  # It diverged: there is no way.
    return after
  way = (target - before["metric"]) / (after["metric"] - before["metric"])
  return {
    name: value + min(way, 1) * (after[name] - value)
    for name, value in before.items()
  }
