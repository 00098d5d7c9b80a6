"""Numbers as people read them."""

from __future__ import annotations

import math

_NEVER = "not reached"


def spread(values, *, digits=0, never=_NEVER):
  """Returns the median of a `summary.Spread`, and its range if there is one."""
  median, low, high = (
    number(value, digits, never)
    for value in (values.median, values.low, values.high)
  )
  return median if low == high else f"{median} ({low}-{high})"


def number(value, digits=0, never=_NEVER):
  """Returns a number with so many digits behind the point.

  Args:
    value: The number.
    digits: So many.
    never: What an infinite one is called.
  """
  return never if math.isinf(value) else f"{value:,.{digits}f}"


def times(factor):
  """Returns a ratio, of which None is one that is not known."""
  return "-" if factor is None else f"{factor:.3g}x"
