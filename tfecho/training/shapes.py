"""Shapes of schedules: the rate as a function of the step.

A step is an int32 tensor, so that it is compared exactly with the ends of
warm-ups, epochs and cycles; what is computed from it is float32. Every duration
is a number of steps. What a shape does during the warm-up doesn't matter:
`warmed_up` replaces it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import keras

if hasattr(keras, "ops"):
  from keras.ops import cast, clip, cos, maximum, where
else:  # Keras 2
  from tensorflow import cast, cos, maximum, where
  from tensorflow import clip_by_value as clip


def whole(step: Any) -> Any:
  """Returns `step` as an int32 tensor."""
  return cast(step, "int32")


def warmed_up(step: Any, peak: float, rate: Any, *, warmup: int) -> Any:
  """Returns `rate`, but in the warm-up a straight line from 0 to `peak`."""
  return where(step < warmup, peak * progress(step, 0, warmup), rate)


def constant(step: Any, peak: float, *, warmup: int) -> Any:
  """Returns `peak`."""
  return peak + 0.0 * cast(step, "float32")


def step(
  step: Any, peak: float, *, warmup: int, every: int, gamma: float
) -> Any:
  """Returns a rate that is multiplied by `gamma` after each `every` steps."""
  return peak * gamma ** cast(step // every, "float32")


def multi_step(
  step: Any, peak: float, *, warmup: int, milestones: list[int], gamma: float
) -> Any:
  """Returns a rate that is multiplied by `gamma` at each of `milestones`."""
  passed = sum(cast(step >= milestone, "float32") for milestone in milestones)
  return peak * gamma**passed


def polynomial(
  step: Any, peak: float, *, warmup: int, total: int, power: float, end: float
) -> Any:
  """Returns a rate that falls to `end` with a power of the steps left."""
  return end + (peak - end) * (1.0 - progress(step, warmup, total)) ** power


def exponential(
  step: Any, peak: float, *, warmup: int, every: int, gamma: float
) -> Any:
  """Returns a rate that is multiplied by `gamma` during each `every` steps."""
  return peak * gamma ** (cast(maximum(step - warmup, 0), "float32") / every)


def cosine_restarts(
  step: Any,
  peak: float,
  *,
  warmup: int,
  total: int,
  cycles: int,
  growth: float,
  end: float,
) -> Any:
  """Returns a rate that falls to `end` in each of `cycles`."""
  rate = constant(step, peak, warmup=warmup)
  bounds = _cycle_bounds(total, cycles, growth)
  for start, stop in zip(bounds, bounds[1:]):
    done = progress(step, min(max(start, warmup), stop), stop)
    wave = end + (peak - end) * (1.0 + cos(math.pi * done)) / 2.0
    rate = where(step >= start, wave, rate)
  return rate


BY_NAME: dict[str, Callable] = {
  "constant": constant,
  "step": step,
  "multi_step": multi_step,
  "polynomial": polynomial,
  "exponential": exponential,
  "cosine_restarts": cosine_restarts,
}


def progress(step: Any, start: int, stop: int) -> Any:
  """Returns what rises from 0 at `start` to 1 at `stop`, and stays there."""
  if start == stop:
    return cast(step >= stop, "float32")
  return clip(cast(step - start, "float32") / (stop - start), 0.0, 1.0)


def _cycle_bounds(total: int, cycles: int, growth: float) -> list[int]:
  ends = [0.0]
  for cycle in range(cycles):
    ends.append(ends[-1] + growth**cycle)
  return [round(total * end / ends[-1]) for end in ends]
