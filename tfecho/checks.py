"""Checks of arguments: the error names the argument, and what came."""

from __future__ import annotations

import numbers
from typing import Any


def checked_int(argument: str, value: Any, *, at_least: int) -> int:
  """Returns `value` as an int.

  Raises:
    ValueError: if it is none, or less than `at_least`.
  """
  integral = isinstance(value, numbers.Integral) and not isinstance(value, bool)
  if not integral or value < at_least:
    raise ValueError(
      f"`{argument}` must be an int of at least {at_least}, got {value!r}"
    )
  return int(value)


def check_function(argument: str, value: Any) -> None:
  """Raises ValueError if `value` is neither None nor can be called."""
  if value is not None and not callable(value):
    raise ValueError(f"`{argument}` must be a function or None, got {value!r}")


def check_name(name: Any) -> None:
  """Raises ValueError if `name` is neither None nor an identifier."""
  if name is not None and not (isinstance(name, str) and name.isidentifier()):
    raise ValueError(
      "`name` must be None or a valid identifier, of letters, digits and"
      f" underscores, got {name!r}"
    )
