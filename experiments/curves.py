"""When a run has reached a target, read from its evaluations.

```python
reached([0.97, 0.99, 0.98, 0.99, 1.0], 0.99)  # 4: (0.98 + 0.99 + 1.0) / 3
best([0.97, 0.99, 0.98, 0.99, 1.0])           # 0.99
```
"""

WINDOW = 3  # evaluations; a single one crosses a target by luck


def reached(values, target, *, maximize=True):
  """Returns at which evaluation a target counts as reached.

  It does as soon as the mean of the last `WINDOW` evaluations is at least as
  good as the target, and at the last of them: before it one could not know.

  Args:
    values: The metric at every evaluation, in order.
    target: What its mean has to reach.
    maximize: Whether a larger metric is a better one.

  Returns:
    An index into `values`, or None if the target has not been reached.
  """
  sign = 1 if maximize else -1
  for last, mean in enumerate(means(values), WINDOW - 1):
    # Means of decimal fractions: 0.99 three times must count as 0.99.
    if sign * (mean - target) >= -1e-9:
      return last
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
