"""How sure a median over a few seeds is: bootstrap intervals.

```python
low, high = of_median([900, 600, 1200, 800, 1000])
low, high = of_gain([900, 600, 1200], [300, 250, 500])
```

Draws the seeds again with replacement, as percentiles (B. Efron, R. Tibshirani,
"An Introduction to the Bootstrap", 1993, chapter 13). With five seeds or fewer
the interval of a median goes from the best seed to the worst: of so few, each
may as well have been the middle one.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

CONFIDENCE = 0.95

# The same records have to give the same interval.
_SEED = 0

# Stands for values that never came: larger than any, and can be averaged.
_NEVER = 1e150

UNKNOWN = (math.nan, math.nan)  # compares with nothing


def of_median(values, *, confidence=CONFIDENCE):
  """Returns the bootstrap interval of a median.

  Args:
    values: Numbers, `math.inf` among them where something never happened.
    confidence: Share of intervals that hold the true median.

  Returns:
    A lower and an upper bound; `UNKNOWN` of fewer than two values.
  """
  return _interval([values], np.median, confidence)


def of_gain(baseline, values, *, confidence=CONFIDENCE):
  """Returns the interval of how often one median holds another one.

  Args:
    baseline: Numbers, whose median is divided.
    values: Numbers, by whose median it is divided.
    confidence: Share of intervals that hold the true ratio.

  Returns:
    A lower and an upper bound; `UNKNOWN` if one of the two has fewer than two
    values, or both have some that never came.
  """
  if math.inf in baseline and math.inf in values:
    return UNKNOWN
  return _interval([baseline, values], _ratio_of_medians, confidence)


def _ratio_of_medians(numerator, denominator, axis):
  return np.median(numerator, axis=axis) / np.median(denominator, axis=axis)


def _interval(samples, statistic, confidence):
  if min(map(len, samples)) < 2:
    return UNKNOWN
  samples = [np.minimum(np.asarray(s, float), _NEVER) for s in samples]
  interval = stats.bootstrap(
    samples,
    statistic,
    confidence_level=confidence,
    vectorized=True,
    # BCa, the default, is not defined where a seed decides the median alone.
    method="percentile",
    random_state=np.random.default_rng(_SEED),
  ).confidence_interval
  return _bound(interval.low), _bound(interval.high)


def _bound(value):
  """Undoes the stand-in: a mean with it in it never came, either."""
  if value > _NEVER**0.5:
    return math.inf
  return 0.0 if 0 < value < _NEVER**-0.5 else float(value)
