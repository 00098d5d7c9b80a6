"""Durations with a unit, and the steps that they are.

    timeline = Timeline(batch_size=128, fresh_examples=50_000, factor=2)
    timeline.steps("5ep")           # 5 passes over the fresh data
    timeline.steps("50_000sp")      # 50,000 fresh examples
    timeline.steps("1e3ba")         # 1,000 steps

    unit    counts                            in steps
    "ep"    passes over the fresh data        with an echo, `factor` times as
                                              many as without
    "sp"    fresh examples                    likewise
    "ba"    batches that the model trains on  one each
    "dur"   parts of the whole training       "0.1dur" is a tenth of it

The units are those of Composer (github.com/mosaicml/composer), where nothing is
echoed: what an epoch is under an echo had to be decided here. It is a pass over
fresh data, so a recipe in epochs costs as much reading with an echo as without.
"""

from __future__ import annotations

import copy
import dataclasses
import math
import numbers
import re
from fractions import Fraction
from typing import Any

from tfecho.checks import checked_int
from tfecho.factors import Factor

_UNITS = {
  "ep": "epochs",
  "ba": "batches",
  "sp": "fresh examples",
  "dur": "parts of the whole training",
}
# There is nothing between two of them.
_WHOLE_UNITS = ("ba", "sp")

_TEXT = re.compile(
  r"""
  (
    -? (?: \d+ (?:_\d+)* (?:\.\d*)? | \.\d+ )  # 5  50_000  0.1  2.  .5
    (?: [eE] [-+]? \d{1,3} )?                   # e3  E-2
  )
  (ep|ba|sp|dur)
  """,
  re.VERBOSE,
)

# Optimizers count steps in int32 on some backends.
_MAX_STEPS = 2**31


@dataclasses.dataclass(frozen=True)
class Duration:
  """How long something takes in training: a number and its unit.

  >>> from tfecho.training import Duration
  >>> Duration.parse("1.5ep")
  Duration(value=Fraction(3, 2), unit='ep')

  Attributes:
    value: how many, at least 0, exactly as it was written.
    unit: "ep", "ba", "sp" or "dur".
  """

  value: Fraction
  unit: str

  @classmethod
  def parse(cls, duration: Any, *, argument: str = "duration") -> Duration:
    """Reads a duration.

    Args:
      duration: text such as "90ep", "50_000sp", "2.5e3ba" or "0.1dur"; or a
        `Duration`; or 0, which needs no unit.
      argument: what to call it in errors.

    Returns:
      The `Duration`.

    Raises:
      ValueError: if there is no unit or an unknown one, if the number is none,
        negative, if batches or fresh examples are not whole, or if it is more
        than the whole training.
    """
    if isinstance(duration, Duration):
      return duration
    if type(duration) is int and duration == 0:
      return cls(Fraction(0), "ba")
    text = duration if isinstance(duration, str) else ""
    match = _TEXT.fullmatch(text.strip())
    if match is None:
      units = ", ".join(f'"{unit}" ({name})' for unit, name in _UNITS.items())
      raise ValueError(
        f'`{argument}` must be a number and a unit, as in "90ep", got'
        f" {duration!r}; units are {units}"
      )
    parsed = cls(Fraction(match[1].replace("_", "")), match[2])
    parsed._check(argument, text)
    return parsed

  def _check(self, argument: str, text: str) -> None:
    if self.value < 0:
      raise ValueError(f"`{argument}` must not be negative, got {text!r}")
    if self.unit in _WHOLE_UNITS and self.value.denominator != 1:
      raise ValueError(
        f"`{argument}` must be a whole number of {_UNITS[self.unit]}, got"
        f" {text!r}"
      )
    if self.unit == "dur" and self.value > 1:
      raise ValueError(
        f'`{argument}` must be at most the whole training, "1dur", got {text!r}'
      )

  def __str__(self) -> str:
    whole = self.value.denominator == 1
    number = self.value.numerator if whole else float(self.value)
    return f"{number}{self.unit}"


class Timeline:
  """What turns durations into optimizer steps: the pace of one training.

  >>> from tfecho.training import Timeline
  >>> timeline = Timeline(batch_size=32, fresh_examples=1_000, factor=2)
  >>> timeline.steps_per_epoch
  63
  >>> timeline.steps("10ep"), timeline.steps("500sp"), timeline.steps("7ba")
  (630, 32, 7)

  A factor that changes, or that nobody knows before, has no steps per epoch.
  Then "ep", "sp" and "dur" need `steps_per_epoch`, or the mean of the factor
  over the training as `factor`. The first value of a variable is not taken for
  it.

  A step is one batch that the model trains on: a micro-step, where gradients
  are accumulated.
  """

  def __init__(
    self,
    *,
    batch_size: int | None = None,
    fresh_examples: int | None = None,
    factor: Any = 1,
    steps_per_epoch: int | None = None,
    total: str | Duration | None = None,
  ):
    """Describes the training; whatever is needed only must be given.

    Args:
      batch_size: examples in a batch, on all replicas together.
      fresh_examples: how many there are in one pass over the data.
      factor: mean echoing factor, 1 without an echo. A `tf.Variable` or None
        (for an echo on stall) says that it is not known in advance.
      steps_per_epoch: what `fit` is told, or finds out by itself, about one
        pass over the data: `len(dataset)`, `Pipeline.steps_per_epoch(...)`. By
        default as many as the examples make, an incomplete batch included.
      total: duration of the whole training.

    Raises:
      ValueError: if an argument is not as described.
    """
    if batch_size is not None:
      batch_size = checked_int("batch_size", batch_size, at_least=1)
    if fresh_examples is not None:
      fresh_examples = checked_int("fresh_examples", fresh_examples, at_least=1)
    if steps_per_epoch is not None:
      steps_per_epoch = checked_int(
        "steps_per_epoch", steps_per_epoch, at_least=1
      )
    self._batch_size = batch_size
    self._fresh_examples = fresh_examples
    self._factor = _constant(factor)
    self._steps_per_epoch = steps_per_epoch
    self._total = None if total is None else _whole(total)

  def __repr__(self) -> str:
    known = {
      "batch_size": self._batch_size,
      "fresh_examples": self._fresh_examples,
      "factor": self._factor and float(self._factor),
      "steps_per_epoch": self._steps_per_epoch,
      "total": self._total and str(self._total),
    }
    return f"Timeline({', '.join(f'{k}={v!r}' for k, v in known.items())})"

  def lasting(self, total: str | Duration) -> Timeline:
    """Returns this timeline for a whole training of that duration."""
    timeline = copy.copy(self)
    timeline._total = _whole(total)
    return timeline

  @property
  def steps_per_epoch(self) -> int | None:
    """Steps in one pass over the fresh data, or None if that is not known."""
    if self._steps_per_epoch is not None:
      return self._steps_per_epoch
    if self._fresh_examples is None or self._batch_size is None:
      return None
    if self._factor is None:
      return None
    emitted = math.floor(self._fresh_examples * self._factor)
    return math.ceil(Fraction(emitted, self._batch_size))

  @property
  def total_steps(self) -> int | None:
    """Steps of the whole training, or None if `total` was not given."""
    if self._total is None:
      return None
    return self.steps(self._total, argument="total")

  def steps(
    self,
    duration: str | Duration,
    *,
    argument: str = "duration",
    scale: float = 1,
  ) -> int:
    """Converts a duration into steps.

    The result is the nearest whole number, halves go up. Only a duration of 0
    takes no step; everything else takes at least one.

    Args:
      duration: as `Duration.parse` reads it.
      argument: what to call it in errors.
      scale: number that the duration is multiplied by before rounding.

    Returns:
      The number of steps.

    Raises:
      ValueError: if it is no duration, or can't be converted with what is known
        about this training.
    """
    parsed = Duration.parse(duration, argument=argument)
    if parsed.value == 0:
      return 0
    pace = self._pace(parsed.unit)
    if pace is None:
      raise ValueError(
        f"`{argument}`='{parsed}' can't be converted into steps:"
        f" {self._missing(parsed.unit)}"
      )
    steps = math.floor(parsed.value * _exact(scale) * pace + Fraction(1, 2))
    if steps >= _MAX_STEPS:
      raise ValueError(
        f"`{argument}`='{parsed}' must be less than 2**31 steps, got {steps:,}"
      )
    return max(1, steps)

  def check_agrees(self, other: Timeline, *, argument: str) -> None:
    """Raises ValueError if both know something about the data, and differ.

    A factor of 1, which is the default, says nothing beside steps per epoch.

    Args:
      other: what is known of the data itself.
      argument: what to call this one in errors.
    """
    names = ["batch_size", "fresh_examples", "factor"]
    if self._factor == 1 and self._steps_per_epoch is not None:
      names.remove("factor")
    for name in names:
      mine, theirs = (getattr(x, f"_{name}") for x in (self, other))
      if None not in (mine, theirs) and mine != theirs:
        raise ValueError(
          f"`{argument}` has `{name}`={float(mine):g}, and the data"
          f" {float(theirs):g}"
        )

  def can_convert(self, duration: str | Duration) -> bool:
    """Whether enough is known to convert a duration into steps."""
    return self._pace(Duration.parse(duration).unit) is not None

  def fresh_examples(self, steps: int) -> int | None:
    """Returns how many fresh examples so many steps take, as far as known.

    >>> from tfecho.training import Timeline
    >>> Timeline(batch_size=32, factor=4).fresh_examples(100)
    800

    Those that wait in buffers between the echo and the model are not counted.
    """
    per_example = self._steps_per_example()
    return None if per_example is None else round(steps / per_example)

  def _pace(self, unit: str) -> int | Fraction | None:
    """Steps that one of `unit` takes, or None if that is not known."""
    if unit == "ba":
      return 1
    if unit == "ep":
      return self.steps_per_epoch
    if unit == "dur":
      return self.total_steps
    return self._steps_per_example()

  def _steps_per_example(self) -> Fraction | None:
    # By way of the epoch, so that all examples of an epoch are one epoch.
    steps_per_epoch = self.steps_per_epoch
    if steps_per_epoch is not None and self._fresh_examples is not None:
      return Fraction(steps_per_epoch, self._fresh_examples)
    if self._factor is None or self._batch_size is None:
      return None
    return self._factor / self._batch_size

  def _missing(self, unit: str) -> str:
    if unit == "dur":
      return "give the `total` of the training"
    if unit == "sp" and self.steps_per_epoch is not None:
      return "give `fresh_examples`"
    if self._factor is None:
      return (
        "the factor is not known in advance; give `steps_per_epoch`, or the"
        " mean of the factor over the training as `factor`"
      )
    if unit == "ep":
      return "give `batch_size` and `fresh_examples`, or `steps_per_epoch`"
    return "give `batch_size`"


def _whole(total: Any) -> Duration:
  parsed = Duration.parse(total, argument="total")
  if parsed.unit == "dur":
    raise ValueError(f"`total` can't be a part of itself, got '{parsed}'")
  return parsed


def _constant(factor: Any) -> Fraction | None:
  """The factor as a number, or None if it is not known in advance."""
  if factor is None:
    return None
  parsed = Factor.parse(factor, rounding="even", seed=None)
  return None if parsed.variable is not None else parsed.constant


def _exact(number: Any) -> Fraction:
  """A tenth for 0.1, and not a tenth and a bit."""
  if isinstance(number, numbers.Rational):
    return Fraction(number)
  return Fraction(repr(float(number)))
