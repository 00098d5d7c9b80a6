"""Numbers as people read them.

  f"{ms(1.234)} ms a step, {num_bytes(786_432)}"    # 1,234 ms a step, 786 kB
"""

from __future__ import annotations


def number(value: float, digits: int) -> str:
  """Returns a positive number with so many digits, and never an exponent.

  >>> number(0.0123, 2), number(12.34, 2), number(1234.0, 2)
  ('0.012', '12', '1,234')
  """
  # `g` writes an exponent where rounding makes a digit more of it.
  if value >= 10**digits - 0.5:
    return f"{value:,.0f}"
  return f"{round(value, 4):.{digits}g}"


def ms(seconds: float) -> str:
  """Returns a time in milliseconds.

  >>> ms(0.01234), ms(1.234)
  ('12.3', '1,234')
  """
  return number(1e3 * seconds, 3)


def num_bytes(count: float) -> str:
  """Returns a size.

  >>> num_bytes(786_432), num_bytes(999_600)
  ('786 kB', '1 MB')
  """
  for unit in ("bytes", "kB", "MB", "GB"):
    if count < 999.5 or unit == "GB":
      return f"{number(count, 3)} {unit}"
    count /= 1000
  raise AssertionError
