"""Chooses where to echo, and how often.

The cheapest choice that removes the bottleneck: the earliest place where some
factor makes the training nearly as fast as any place and factor could, since
the earlier an echo stands, the fresher its repeats look; and there the smallest
such factor.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from tfecho.advice import model
from tfecho.advice.costs import Measurements

FACTORS = (1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)

# Slower than the fastest choice by less than this is as good.
_AS_FAST = 1.03

# Faster by less than this is not worth a repeated example, or a line of advice.
WORTH_IT = 1.1


@dataclasses.dataclass(frozen=True)
class Choice:
  """A way to feed the training, and what it would make of it.

  Attributes:
    echo_after: the stage that the echo stands behind; None for no echo.
    factor: how often it emits each element; 1 for no echo.
    step_seconds: predicted seconds per training step.
  """

  echo_after: str | None
  factor: float
  step_seconds: float


def choices(measured: Measurements, max_factor: float) -> list[Choice]:
  """Returns every choice there is, no echo first."""
  factors = [factor for factor in FACTORS if factor < max_factor]
  return [
    Choice(None, 1, measured.baseline.seconds),
    *(
      Choice(name, factor, model.step_seconds(measured, place, factor))
      for name, place in measured.places.items()
      for factor in (*factors, max_factor)
    ),
  ]


def is_input_bound(measured: Measurements) -> bool:
  """Whether training takes longer than on batches that are in memory."""
  return measured.baseline.seconds > WORTH_IT * measured.step.seconds


def recommended(all_choices: Sequence[Choice]) -> Choice:
  """Returns the choice to make of what `choices` returned."""
  baseline, *echoes = all_choices
  fastest = min(choice.step_seconds for choice in echoes)
  if baseline.step_seconds <= WORTH_IT * fastest:
    return baseline
  good = [x for x in echoes if x.step_seconds <= _AS_FAST * fastest]
  # Places come in the order that elements take, factors from small to large.
  return good[0]


def bottleneck(measured: Measurements) -> str:
  """Returns the name of the stage that training waits for most, or "step"."""
  if not is_input_bound(measured):
    return "step"
  return max(_own(measured), key=lambda pair: pair[1])[0]


def _own(measured: Measurements) -> Iterable[tuple[str, float]]:
  """Every stage with the seconds that are its own."""
  for name, cost in measured.stages.items():
    seconds = cost.seconds
    if name == "read":  # It was measured with the source before it.
      seconds -= measured.stages["source"].seconds
    yield name, seconds
