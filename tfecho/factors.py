"""The echoing factor: how often each fresh element is emitted.

    Factor.parse(2.5, rounding="even", seed=None)   # 2, 3, 2, 3, ... copies
    Factor.parse(factor_variable(2), ...)           # whatever it holds by then

A factor is a fraction p/q in whole numbers, so that nothing drifts however long
the stream is: with even rounding, n elements become floor(n p / q), of which
element i is emitted floor((i + 1) p / q) - floor(i p / q) times.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import fractions
import math
import numbers
from typing import Any

import tensorflow as tf

from tfecho.checks import checked_seed

ROUNDINGS = ("even", "random")

# Finer than anybody tunes a factor, and small enough for exact arithmetic.
MAX_DENOMINATOR = 10_000

# Those of a floating-point type count in steps of 1 / MAX_DENOMINATOR.
VARIABLE_DTYPES = (tf.int32, tf.int64, tf.float32, tf.float64)

# Products with a remainder below MAX_DENOMINATOR stay within int64.
_MAX_NUMERATOR = 2**62

# Beyond that, a step of 1 / MAX_DENOMINATOR is lost in a double.
MAX_VARIABLE = 1e11

# `tf.data.Dataset.random` draws from [0, 2**32).
_DRAW_RANGE = 2**32


def factor_variable(
  value: float, *, dtype: Any = tf.float32, name: str = "echoing_factor"
) -> tf.Variable:
  """Returns a variable to use as the factor of `echo`.

  It lives on the CPU, where the input pipeline reads it, and outside of the
  distribution strategy, if there is one: the pipeline of a worker is one, not
  one per replica.

  >>> factor = tfecho.factor_variable(2)
  >>> dataset = tf.data.Dataset.range(2).apply(tfecho.echo(factor))
  >>> [int(x) for x in dataset]
  [0, 0, 1, 1]
  >>> _ = factor.assign(3)
  >>> [int(x) for x in dataset]
  [0, 0, 0, 1, 1, 1]

  Args:
    value: first factor, at least 1.
    dtype: a floating-point type, which counts in steps of 1/10,000, or an
      integer type for whole factors only.
    name: name of the variable.

  Returns:
    A scalar `tf.Variable`, not trainable.

  Raises:
    ValueError: if `value` is no factor, or `dtype` none for a factor.
  """
  fraction = _fraction(value, argument="value")
  dtype = tf.as_dtype(dtype)
  if dtype not in VARIABLE_DTYPES:
    raise ValueError(
      "`dtype` must be one of"
      f" {[t.name for t in VARIABLE_DTYPES]}, got {dtype.name!r}"
    )
  if dtype.is_integer and fraction.denominator != 1:
    raise ValueError(
      f"`value` must be whole for `dtype` {dtype.name!r}, got {value!r}"
    )

  def create() -> tf.Variable:
    with tf.device("CPU:0"):
      return tf.Variable(value, trainable=False, dtype=dtype, name=name)

  # Strategies act on the variables that their own thread creates.
  with concurrent.futures.ThreadPoolExecutor(max_workers=1) as thread:
    return thread.submit(create).result()


@dataclasses.dataclass(frozen=True)
class Factor:
  """A checked echoing factor.

  Attributes:
    constant: p/q; 1 if there is a `variable`.
    variable: scalar `tf.Variable` that is read for every fresh element, or
      None.
    random: whether chance decides on the last copy of every fresh element.
    seed: of that chance, or None.
  """

  constant: fractions.Fraction
  variable: tf.Variable | None = None
  random: bool = False
  seed: int | None = None

  @classmethod
  def parse(cls, factor: Any, *, rounding: str, seed: int | None) -> Factor:
    """Checks the arguments of `echo`.

    Raises:
      ValueError: naming the argument, what was expected and what came.
    """
    if rounding not in ROUNDINGS:
      raise ValueError(
        f"`rounding` must be one of {list(ROUNDINGS)}, got {rounding!r}"
      )
    seed = checked_seed(seed)
    if seed is not None and rounding != "random":
      raise ValueError(
        f'`seed` needs `rounding="random"`, got `seed`={seed!r} with'
        f" `rounding`={rounding!r}"
      )
    if hasattr(factor, "assign"):
      variable = _checked_variable(factor)
      return cls(fractions.Fraction(1), variable, rounding == "random", seed)
    constant = _fraction(factor, argument="factor")
    whole = constant.denominator == 1
    return cls(constant, None, rounding == "random" and not whole, seed)

  def cardinality(self, fresh: int) -> int:
    """Returns how many elements `fresh` ones become, as tf.data counts."""
    if fresh in (0, tf.data.INFINITE_CARDINALITY, tf.data.UNKNOWN_CARDINALITY):
      return fresh
    if self.variable is not None or self.random:
      return tf.data.UNKNOWN_CARDINALITY
    emitted = math.floor(fresh * self.constant)
    return emitted if emitted < 2**63 else tf.data.UNKNOWN_CARDINALITY

  def draws(self) -> tf.data.Dataset:
    """Returns uniform numbers within [0, 2**32), others in every epoch."""
    return tf.data.Dataset.random(
      seed=self.seed, rerandomize_each_iteration=True
    )

  def op_inputs(self) -> dict[str, Any]:
    """Returns the inputs and attributes that describe it to a native op."""
    to_variant = tf.data.experimental.to_variant
    return {
      "numerator": self.constant.numerator,
      "denominator": self.constant.denominator,
      "draws": [to_variant(self.draws())] if self.random else [],
      "variables": [] if self.variable is None else [self.variable.handle],
    }

  def read(self) -> tuple[tf.Tensor, int]:
    """Returns numerator and denominator, in a function of a dataset."""
    if self.variable is None:
      numerator = tf.constant(self.constant.numerator, tf.int64)
      return numerator, self.constant.denominator
    value = self.variable.read_value()
    if value.dtype.is_integer:
      return tf.cast(value, tf.int64), 1
    steps = tf.round(tf.cast(value, tf.float64) * MAX_DENOMINATOR)
    return tf.cast(steps, tf.int64), MAX_DENOMINATOR

  def next_copies(
    self, remainder: tf.Tensor, draw: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the new remainder, and the copies of the next fresh element.

    For a function of a dataset.

    Args:
      remainder: int64 scalar, what even rounding has carried over so far.
      draw: int64 scalar within [0, 2**32), what random rounding goes by.
    """
    numerator, denominator = self.read()
    if not self.random:
      total = remainder + numerator
      return total % denominator, total // denominator
    extra = draw * denominator < (numerator % denominator) * _DRAW_RANGE
    return remainder, numerator // denominator + tf.cast(extra, tf.int64)


def _fraction(factor: Any, *, argument: str) -> fractions.Fraction:
  if isinstance(factor, bool) or not isinstance(factor, numbers.Real):
    raise ValueError(
      f"`{argument}` must be a number or a scalar `tf.Variable`, got"
      f" {factor!r} of type {type(factor).__name__}"
    )
  # The negated comparison refuses NaN, too.
  if not factor >= 1 or factor == math.inf:  # type: ignore[operator]
    raise ValueError(
      f"`{argument}` must be finite and at least 1, got {factor!r}"
    )
  exact = (
    fractions.Fraction(factor)
    if isinstance(factor, numbers.Rational)
    else fractions.Fraction(float(factor))
  )
  fraction = exact.limit_denominator(MAX_DENOMINATOR)
  if fraction.numerator > _MAX_NUMERATOR:
    raise ValueError(f"`{argument}` must be at most 2**62, got {factor!r}")
  return fraction


def _checked_variable(variable: Any) -> tf.Variable:
  if not isinstance(variable, tf.Variable) or hasattr(variable, "values"):
    raise ValueError(
      "`factor` must be one plain `tf.Variable`, best made by"
      f" `tfecho.factor_variable`, got a {type(variable).__name__}"
    )
  if variable.shape.rank != 0:
    raise ValueError(
      f"`factor` must be a scalar, got a variable of shape {variable.shape}"
    )
  if variable.dtype not in VARIABLE_DTYPES:
    raise ValueError(
      "`factor` must be a variable of dtype"
      f" {[t.name for t in VARIABLE_DTYPES]}, got {variable.dtype.name!r}"
    )
  if "GPU" in variable.device or "TPU" in variable.device:
    raise ValueError(
      "`factor` must be on the CPU, where the input pipeline reads it; make it"
      f" by `tfecho.factor_variable`. It is on {variable.device!r}"
    )
  return variable
