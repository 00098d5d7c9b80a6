"""Checks of arguments: the error names the argument, and what came."""

from __future__ import annotations

import math
import numbers
from typing import Any

import tensorflow as tf

# TensorFlow keeps sizes and counts in 64 bits.
MAX_INT = 2**63 - 1

# `Dataset.shuffle` makes room for its buffer in advance, of 24 bytes for each
# element, and so can `batch`. Where there is none, TensorFlow ends the process.
MAX_ROOM = 2**28


def checked_int(
  argument: str, value: Any, *, at_least: int, at_most: int = MAX_INT
) -> int:
  """Returns `value` as an int.

  Raises:
    ValueError: if it is none, less than `at_least`, or more than `at_most`.
  """
  if not _is(value, numbers.Integral) or value < at_least:
    raise ValueError(
      f"`{argument}` must be an int of at least {at_least}, got {value!r}"
    )
  if value > at_most:
    raise ValueError(f"`{argument}` must be at most {at_most}, got {value!r}")
  return int(value)


def checked_seed(seed: Any) -> int | None:
  """Returns what makes random numbers reproducible, or None.

  Raises:
    ValueError: if it is neither None nor an int.
  """
  if seed is None:
    return None
  if not _is(seed, numbers.Integral):
    raise ValueError(f"`seed` must be an int or None, got {seed!r}")
  return int(seed)


def checked_stateless_seed(seed: Any) -> tf.Tensor:
  """Returns what `tf.random.stateless_*` draws from, as a tensor.

  Raises:
    ValueError: if it is not two whole numbers.
  """
  seed = tf.convert_to_tensor(seed)
  if not seed.dtype.is_integer or not seed.shape.is_compatible_with([2]):
    raise ValueError(
      f"`seed` must be two whole numbers, got {seed.dtype.name} of shape"
      f" {seed.shape}"
    )
  return seed


def check_flag(argument: str, value: Any) -> None:
  """Raises ValueError if `value` is neither True nor False."""
  if not isinstance(value, bool):
    raise ValueError(f"`{argument}` must be True or False, got {value!r}")


def check_number(
  argument: str, value: Any, *, above: float = -math.inf
) -> None:
  """Raises ValueError if `value` is no finite number above a limit."""
  if not _is(value, numbers.Real) or not above < value < math.inf:
    limit = "" if above == -math.inf else f" above {above}"
    raise ValueError(
      f"`{argument}` must be a finite number{limit}, got {value!r}"
    )


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


def _is(value: Any, kind: type) -> bool:
  """Whether `value` is a number of this kind; True and False are none."""
  return isinstance(value, kind) and not isinstance(value, bool)
