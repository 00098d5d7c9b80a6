"""Learning rates that are written in durations and change at every step.

    rate = schedules.cosine(0.1, "90ep", warmup="5ep")
    timeline = Timeline(batch_size=128, fresh_examples=50_000, factor=2)
    optimizer = keras.optimizers.SGD(rate.on(timeline), momentum=0.9)

A schedule in batches, as in `cosine(0.1, "10_000ba")`, needs no `Timeline`.

    schedule            rate after the warm-up
    constant            `peak`
    step                `gamma` times less every so often
    multi_step          `gamma` times less at every milestone
    linear              straight down to `end`, at `total`
    polynomial          the same, bent by `power`
    exponential         `gamma` times less every so often, and smoothly between
    cosine              half a cosine wave down to `end`, at `total`
    cosine_restarts     several of them, each from `peak`

All of them are Keras schedules. They are stored with a model, and come back
with it without `custom_objects`, once `tfecho.training` has been imported. In a
process that has not imported it, Keras refuses to load the model.

A step is a batch that the model trains on:

*   With `steps_per_execution`, each of those in an execution.
*   With `gradient_accumulation_steps`, each of a group, although only the last
    one changes the weights, at its rate. Epochs keep their length.
*   With loss scaling, Keras 3 doesn't count a batch that it skips because the
    gradients are not finite: the schedule falls behind by those few. Keras 2
    counts it.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any

import keras

from tfecho.checks import checked_int
from tfecho.training import shapes
from tfecho.training.durations import Duration, Timeline

RESOLUTIONS = ("step", "epoch")

# By name, each a duration or a list of durations.
_Durations = dict[str, Any]


def constant(peak: float, **timing: Any) -> Schedule:
  """Returns the schedule `peak`, after the warm-up.

  >>> from tfecho.training import schedules
  >>> rate = schedules.constant(0.1, warmup="4ba")
  >>> [round(float(rate(step)), 3) for step in range(6)]
  [0.0, 0.025, 0.05, 0.075, 0.1, 0.1]

  Args:
    peak: learning rate.
    **timing: `warmup`, `resolution` and `scale`, as for every `Schedule`.
  """
  return Schedule("constant", peak, **timing)


def step(
  peak: float, every: str | Duration, *, gamma: float = 0.1, **timing: Any
) -> Schedule:
  """Returns the schedule `peak * gamma ** floor(step / every)`.

  >>> from tfecho.training import schedules
  >>> rate = schedules.step(1.0, "2ba", gamma=0.5)
  >>> [float(rate(step)) for step in range(6)]
  [1.0, 1.0, 0.5, 0.5, 0.25, 0.25]

  Args:
    peak: learning rate at the start, or what the warm-up leads to.
    every: duration after which the rate falls, the warm-up included: with
      "30ep" it falls at the end of epoch 30, warm-up or not.
    gamma: what the rate is multiplied by then.
    **timing: `warmup`, `resolution` and `scale`, as for every `Schedule`.
  """
  return Schedule("step", peak, {"every": every}, {"gamma": gamma}, **timing)


def multi_step(
  peak: float,
  milestones: Sequence[str | Duration],
  *,
  gamma: float = 0.1,
  **timing: Any,
) -> Schedule:
  """Returns the schedule `peak * gamma ** n`, past the n-th milestone.

  >>> from tfecho.training import schedules
  >>> rate = schedules.multi_step(1.0, ["2ba", "3ba"], gamma=0.5)
  >>> [float(rate(step)) for step in range(6)]
  [1.0, 1.0, 0.5, 0.25, 0.25, 0.25]

  Args:
    peak: learning rate at the start, or what the warm-up leads to.
    milestones: durations from the start, the warm-up included, none before the
      one in front of it. The first step after a milestone has the lower rate.
    gamma: what the rate is multiplied by at each of them.
    **timing: `warmup`, `resolution` and `scale`, as for every `Schedule`.

  Source: Goyal et al., "Accurate, Large Minibatch SGD: Training ImageNet in 1
  Hour", arXiv 1706.02677, with milestones at 30, 60 and 80 epochs.
  """
  durations = {"milestones": list(milestones)}
  return Schedule("multi_step", peak, durations, {"gamma": gamma}, **timing)


def linear(
  peak: float,
  total: str | Duration = "1dur",
  *,
  end: float = 0.0,
  **timing: Any,
) -> Schedule:
  """Returns the schedule `peak + (end - peak) * progress`.

  Progress goes from 0 at the end of the warm-up to 1 at `total`.

  >>> from tfecho.training import schedules
  >>> rate = schedules.linear(1.0, "6ba", warmup="2ba")
  >>> [float(rate(step)) for step in range(8)]
  [0.0, 0.5, 1.0, 0.75, 0.5, 0.25, 0.0, 0.0]

  Args:
    peak: learning rate at the start, or what the warm-up leads to.
    total: duration after which the rate is `end`, the warm-up included. By
      default that of the whole training.
    end: learning rate from then on.
    **timing: `warmup`, `resolution` and `scale`, as for every `Schedule`.
  """
  return polynomial(peak, total, power=1, end=end, **timing)


def polynomial(
  peak: float,
  total: str | Duration = "1dur",
  *,
  power: float = 2.0,
  end: float = 0.0,
  **timing: Any,
) -> Schedule:
  """Returns the schedule `end + (peak - end) * (1 - progress) ** power`.

  Progress goes from 0 at the end of the warm-up to 1 at `total`.

  >>> from tfecho.training import schedules
  >>> rate = schedules.polynomial(1.0, "4ba")
  >>> [float(rate(step)) for step in range(6)]
  [1.0, 0.5625, 0.25, 0.0625, 0.0, 0.0]

  Args:
    peak: learning rate at the start, or what the warm-up leads to.
    total: duration after which the rate is `end`, the warm-up included. By
      default that of the whole training.
    power: above 1 the rate falls faster at first, below 1 at last.
    end: learning rate from then on.
    **timing: `warmup`, `resolution` and `scale`, as for every `Schedule`.
  """
  parameters = {"power": power, "end": end}
  return Schedule("polynomial", peak, {"total": total}, parameters, **timing)


def exponential(
  peak: float, every: str | Duration, *, gamma: float, **timing: Any
) -> Schedule:
  """Returns the schedule `peak * gamma ** ((step - warmup) / every)`.

  >>> from tfecho.training import schedules
  >>> rate = schedules.exponential(1.0, "2ba", gamma=0.25)
  >>> [float(rate(step)) for step in range(4)]
  [1.0, 0.5, 0.25, 0.125]

  Args:
    peak: learning rate at the start, or what the warm-up leads to.
    every: duration in which the rate becomes `gamma` times what it was,
      starting at the end of the warm-up.
    gamma: what it is multiplied by in that time.
    **timing: `warmup`, `resolution` and `scale`, as for every `Schedule`.
  """
  return Schedule(
    "exponential", peak, {"every": every}, {"gamma": gamma}, **timing
  )


def cosine(
  peak: float,
  total: str | Duration = "1dur",
  *,
  end: float = 0.0,
  **timing: Any,
) -> Schedule:
  """Returns `end + (peak - end) * (1 + cos(pi * progress)) / 2`.

  Progress goes from 0 at the end of the warm-up to 1 at `total`. Keras'
  `CosineDecay` adds its warm-up to `decay_steps`; here it is a part of `total`.

  >>> from tfecho.training import schedules
  >>> rate = schedules.cosine(1.0, "6ba", warmup="2ba")
  >>> [round(float(rate(step)), 3) for step in range(8)]
  [0.0, 0.5, 1.0, 0.854, 0.5, 0.146, 0.0, 0.0]

  Args:
    peak: learning rate at the start, or what the warm-up leads to.
    total: duration after which the rate is `end`, the warm-up included. By
      default that of the whole training.
    end: learning rate from then on.
    **timing: `warmup`, `resolution` and `scale`, as for every `Schedule`.

  Source: Loshchilov, Hutter, "SGDR: Stochastic Gradient Descent with Warm
  Restarts", arXiv 1608.03983.
  """
  return cosine_restarts(peak, total, cycles=1, end=end, **timing)


def cosine_restarts(
  peak: float,
  total: str | Duration = "1dur",
  *,
  cycles: int,
  growth: float = 1.0,
  end: float = 0.0,
  **timing: Any,
) -> Schedule:
  """Returns half cosine waves from `peak` to `end`, as many as `cycles`.

  They fill `total`: the rate is `end` when the training is over, and not
  somewhere on the slope. The warm-up is the first part of the first cycle.

  >>> from tfecho.training import schedules
  >>> rate = schedules.cosine_restarts(1.0, "6ba", cycles=2, growth=2)
  >>> [round(float(rate(step)), 3) for step in range(8)]
  [1.0, 0.5, 1.0, 0.854, 0.5, 0.146, 0.0, 0.0]

  Args:
    peak: learning rate at the start of every cycle.
    total: duration of all cycles together, the warm-up included. By default
      that of the whole training.
    cycles: number of cycles.
    growth: how much longer each cycle is than the one before it. Cycles of 10,
      20 and 40 epochs are a `total` of "70ep" with a `growth` of 2.
    end: learning rate at the end of every cycle, and after the last one.
    **timing: `warmup`, `resolution` and `scale`, as for every `Schedule`.

  Source: Loshchilov, Hutter, "SGDR: Stochastic Gradient Descent with Warm
  Restarts", arXiv 1608.03983, where `cycles` and `growth` follow from the
  length of the first cycle, T_0, and T_mult.
  """
  parameters = {
    "cycles": checked_int("cycles", cycles, at_least=1),
    "growth": growth,
    "end": end,
  }
  return Schedule(
    "cosine_restarts", peak, {"total": total}, parameters, **timing
  )


@keras.saving.register_keras_serializable(package="tfecho")
class Schedule(keras.optimizers.schedules.LearningRateSchedule):
  """A warm-up, and then one of the shapes that this module has functions for.

  Until the durations are steps, it is only a recipe: `on` says what they are.

  >>> from tfecho.training import Timeline, schedules
  >>> recipe = schedules.multi_step(0.1, ["30ep", "60ep"], warmup="5ep")
  >>> rate = recipe.on(Timeline(steps_per_epoch=100))
  >>> rate.steps
  {'milestones': [3000, 6000], 'warmup': 500}
  >>> round(float(rate(3000)), 3)
  0.01

  The learning rate is a float32 scalar, or has the shape of `step`.
  """

  def __init__(
    self,
    shape: str,
    peak: float,
    durations: _Durations | None = None,
    parameters: dict[str, float] | None = None,
    *,
    warmup: str | Duration = "0ba",
    resolution: str = "step",
    scale: float = 1.0,
    steps_per_epoch: int | None = None,
  ):
    """Describes the schedule. The functions of this module know the shapes.

    Args:
      shape: name of a shape.
      peak: learning rate that the warm-up leads to.
      durations: those of the shape, by name.
      parameters: the numbers that the shape needs, by name.
      warmup: duration of the warm-up, in which the rate rises from 0 at the
        first step to `peak`, in a straight line. It is a part of `total`, and
        milestones count from its beginning.
      resolution: "step" to change the rate at every step; "epoch" to keep it
        during an epoch, at what it is in the first step of that.
      scale: number that multiplies all durations, to shorten or stretch a
        recipe; the warm-up, too.
      steps_per_epoch: what `on` finds out for the resolution "epoch".

    Raises:
      ValueError: if an argument is not as described.
    """
    if shape not in shapes.BY_NAME:
      raise ValueError(
        f"`shape` must be one of {list(shapes.BY_NAME)}, got {shape!r}"
      )
    if resolution not in RESOLUTIONS:
      raise ValueError(
        f"`resolution` must be one of {list(RESOLUTIONS)}, got {resolution!r}"
      )
    self.shape = shape
    self.peak = _positive("peak", peak)
    self.durations = _mapped(durations or {}, _text)
    self.parameters = {
      name: (_not_negative if name == "end" else _positive)(name, number)
      for name, number in (parameters or {}).items()
    }
    self.warmup = _text("warmup", warmup)
    self.resolution = resolution
    self.scale = _positive("scale", scale)
    self.steps_per_epoch = steps_per_epoch
    self._steps = self._in_steps(Timeline()) if self._is_in_batches() else None

  @property
  def steps(self) -> _Durations:
    """All durations in steps, by name.

    Raises:
      ValueError: if they are not known yet, without `on`.
    """
    if self._steps is None:
      durations = {**self.durations, "warmup": self.warmup}
      raise ValueError(
        "this schedule has no steps yet: call its method `on` with a"
        f" `Timeline` that converts {durations} at the resolution"
        f" {self.resolution!r}"
      )
    return dict(self._steps)

  def on(self, timeline: Timeline) -> Schedule:
    """Returns this schedule with all durations in steps of `timeline`.

    Raises:
      ValueError: if `timeline` is none, or can't convert them, or if they make
        no sense together.
    """
    if not isinstance(timeline, Timeline):
      raise ValueError(f"`timeline` must be a `Timeline`, got {timeline!r}")
    if self.resolution == "epoch" and timeline.steps_per_epoch is None:
      raise ValueError(
        "`resolution`='epoch' needs the steps of an epoch, which this"
        " `Timeline` doesn't know"
      )
    batches = _mapped(self._in_steps(timeline), lambda _, steps: f"{steps}ba")
    return Schedule(
      self.shape,
      self.peak,
      durations=batches,
      parameters=self.parameters,
      warmup=batches.pop("warmup"),
      resolution=self.resolution,
      steps_per_epoch=timeline.steps_per_epoch,
    )

  def __call__(self, step: Any) -> Any:
    """Returns the learning rate for a step, counted from 0."""
    steps = self.steps
    step = shapes.whole(step)
    if self.resolution == "epoch":
      step = step // self.steps_per_epoch * self.steps_per_epoch
    shape = shapes.BY_NAME[self.shape]
    rate = shape(step, self.peak, **steps, **self.parameters)
    return shapes.warmed_up(step, self.peak, rate, warmup=steps["warmup"])

  def with_peak(self, peak: float) -> Schedule:
    """Returns the same schedule with another peak.

    An `end` stays where it is.

    >>> from tfecho.training import schedules
    >>> rate = schedules.step(0.1, "2ba").with_peak(0.2)
    >>> round(float(rate(2)), 3)
    0.02
    """
    return Schedule.from_config({**self.get_config(), "peak": peak})

  def get_config(self) -> dict[str, Any]:
    """Returns the arguments that make this schedule."""
    return {
      "shape": self.shape,
      "peak": self.peak,
      "durations": self.durations,
      "parameters": self.parameters,
      "warmup": self.warmup,
      "resolution": self.resolution,
      "scale": self.scale,
      "steps_per_epoch": self.steps_per_epoch,
    }

  def __repr__(self) -> str:
    return f"Schedule({self.get_config()})"

  def _is_in_batches(self) -> bool:
    if self.resolution == "epoch" and self.steps_per_epoch is None:
      return False
    durations = [self.warmup]
    for value in self.durations.values():
      durations += value if isinstance(value, list) else [value]
    return all(duration.endswith("ba") for duration in durations)

  def _in_steps(self, timeline: Timeline) -> _Durations:
    def convert(name: str, duration: str) -> int:
      return timeline.steps(duration, argument=name, scale=self.scale)

    steps = _mapped({**self.durations, "warmup": self.warmup}, convert)
    _check_steps(steps)
    return steps


def _mapped(
  durations: _Durations, function: Callable[[str, Any], Any]
) -> _Durations:
  """Calls `function(name, duration)` for each, those of lists included."""
  return {
    name: [function(name, one) for one in value]
    if isinstance(value, list)
    else function(name, value)
    for name, value in durations.items()
  }


def _text(name: str, duration: Any) -> str:
  """A duration as text, which a model can be stored with."""
  return str(Duration.parse(duration, argument=name))


def _check_steps(steps: _Durations) -> None:
  for name in ("every", "total"):
    if steps.get(name) == 0:
      raise ValueError(f"`{name}` must be longer than 0")
  if "total" in steps and steps["warmup"] > steps["total"]:
    raise ValueError(
      "`warmup` is a part of `total`, and must not be longer, got"
      f" {steps['warmup']:,} of {steps['total']:,} steps"
    )
  milestones = steps.get("milestones", [0])
  if not milestones or milestones != sorted(milestones):
    raise ValueError(
      "`milestones` must be one or more durations in ascending order, got"
      f" {milestones} steps"
    )


def _positive(argument: str, number: Any) -> float:
  if _not_negative(argument, number) == 0:
    raise ValueError(f"`{argument}` must be above 0, got {number!r}")
  return _not_negative(argument, number)


def _not_negative(argument: str, number: Any) -> float:
  real = isinstance(number, numbers.Real) and not isinstance(number, bool)
  if not real or not 0 <= number < math.inf:
    raise ValueError(
      f"`{argument}` must be a finite number of at least 0, got {number!r}"
    )
  # Types of numpy could not be stored with a model.
  return number if isinstance(number, int) else float(number)
