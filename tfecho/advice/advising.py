"""The call, and what it returns.

    advice = tfecho.advise(pipeline, step_seconds=0.120)
    advice.input_bound, advice.bottleneck, advice.ratios
    advice.recommended
    json.dumps(advice.to_dict())
"""

from __future__ import annotations

import dataclasses
import inspect
import logging
import time
from collections.abc import Callable
from typing import Any

from tfecho.advice import choosing, measuring, model, remedies, table
from tfecho.advice.choosing import Choice
from tfecho.advice.costs import Measurements
from tfecho.advice.remedies import Remedy
from tfecho.checks import check_function, check_number, checked_int
from tfecho.pipeline import Pipeline

# Of the memory that is free now, how much a cache may take.
_SHARE_FOR_CACHE = 0.5

_logger = logging.getLogger("tfecho")


@dataclasses.dataclass(frozen=True)
class Advice:
  """What was measured, and what follows; `print` shows it as a table.

  Times are seconds per training step, or per batch, which is the same.

  ```python
  pipeline = tfecho.Pipeline(
    tf.data.Dataset.range(1024), decode=tf.square, batch_size=32
  )
  advice = tfecho.advise(pipeline, step_seconds=0.001, seconds=0.1)
  assert set(advice.ratios) == {"decode", "batch"}
  train = pipeline.dataset(**advice.echo)
  ```

  Attributes:
    measured: times of every stage, place and side, as `Measurements`.
    choices: every place and factor with the predicted time; no echo first.
    recommended: the one of them to take. Its `echo_after` is None where an
      echo gains nothing.
    remedies: what else would help, without repeating an example.
    watch: what to look after when training as recommended.
  """

  measured: Measurements
  choices: tuple[Choice, ...]
  recommended: Choice
  remedies: tuple[Remedy, ...]
  watch: tuple[str, ...]

  @property
  def input_bound(self) -> bool:
    """Whether training is slower than on batches that are in memory."""
    return choosing.is_input_bound(self.measured)

  @property
  def bottleneck(self) -> str:
    """The stage that holds training up, or "step": the training itself."""
    return choosing.bottleneck(self.measured)

  @property
  def ratios(self) -> dict[str, float]:
    """R at every place: upstream over downstream time of a batch."""
    places = self.measured.places.items()
    return {name: model.ratio(place) for name, place in places}

  @property
  def speedup(self) -> float:
    """Predicted steps per second as recommended, over those without an echo.

    The echo is worth it if training takes fewer than so many times the steps.
    """
    return self.measured.baseline.seconds / self.recommended.step_seconds

  @property
  def simpler_is_as_fast(self) -> bool:
    """Whether one of `remedies` makes training as fast as `recommended`."""
    return any(
      remedy.step_seconds is not None
      and remedy.step_seconds <= self.recommended.step_seconds
      for remedy in self.remedies
    )

  @property
  def echo(self) -> dict[str, Any]:
    """The arguments of `Pipeline.dataset` that make the recommended echo.

    Whatever `remedies` say: look at `simpler_is_as_fast` before.
    """
    choice = self.recommended
    if choice.echo_after is None:
      return {}
    return {"echo_after": choice.echo_after, "factor": choice.factor}

  def to_dict(self) -> dict[str, Any]:
    """Returns all of this in the types that JSON has."""
    return {
      **dataclasses.asdict(self),
      "input_bound": self.input_bound,
      "bottleneck": self.bottleneck,
      "ratios": self.ratios,
      "speedup": self.speedup,
      "simpler_is_as_fast": self.simpler_is_as_fast,
      "echo": self.echo,
    }

  def __str__(self) -> str:
    return table.text(self)


def advise(
  pipeline: Pipeline,
  *,
  train_step: Callable | None = None,
  step_seconds: float | None = None,
  max_factor: float = 8,
  memory_bytes: int | None = None,
  seconds: float = 10.0,
  on_progress: Callable[[str], Any] | None = None,
) -> Advice:
  """Measures a pipeline and its training, and says where to echo, if at all.

  Every stage is timed by itself and together with those before and behind it,
  as parallel as `Pipeline` runs it; the training step on a batch in memory; and
  the training as it is. A time model, which adds up what computes on the same
  cores and overlaps what waits, tells from that how long a step would take
  with an echo in each place.

  Recommended is the earliest place where an echo removes the bottleneck, since
  the earlier it stands, the more a repeated example is worth, with the smallest
  factor that does. Where training waits for nothing, no echo is.

  ```python
  pipeline = tfecho.Pipeline(
    tf.data.Dataset.range(1024),
    decode=lambda i: tf.fill([64], tf.cast(i, tf.float32)),
    augment=lambda x, seed: x + tf.random.stateless_normal([64], seed),
    batch_size=32,
  )
  weights = tf.Variable(tf.zeros([64, 64]))

  @tf.function
  def train_step(batch):
    weights.assign_add(1e-6 * tf.matmul(batch, batch, transpose_a=True))

  advice = tfecho.advise(pipeline, train_step=train_step, seconds=0.1)
  print(advice)
  ```

  Args:
    pipeline: what feeds the training.
    train_step: does one training step, for instance `model.train_on_batch`. It
      is called with a batch as `Dataset.map` would call it, tuples unpacked
      unless it takes a single argument. It really trains, some hundred steps:
      give it a copy of the model, or load the weights again afterwards.
    step_seconds: instead of it, how long a step takes, on an accelerator that
      leaves the processor to the input. One that trains on the processor needs
      `train_step`.
    max_factor: the largest factor to consider. Repeats are worth less and less:
      see the experiments.
    memory_bytes: how much memory `cache()` may take; by default half of what is
      free.
    seconds: how long to measure, about. A stage that takes longer for a batch
      than its part of this, a fifth of a tenth, makes it longer.
    on_progress: called with a line of text now and then; by default they are
      logged.

  Returns:
    An `Advice`.

  Raises:
    ValueError: if an argument is not as described, or the source is empty.

  Reference:
    Choi, Passos, Shallue, Dahl, "Faster Neural Network Training with Data
    Echoing", arXiv 1907.05550, for R and the time of an echoed pipeline.
  """
  if not isinstance(pipeline, Pipeline):
    raise ValueError(
      f"`pipeline` must be a `tfecho.Pipeline`, got {type(pipeline).__name__}"
    )
  step = _step(train_step, step_seconds)
  check_number("max_factor", max_factor, above=1)
  check_number("seconds", seconds, above=0)
  check_function("on_progress", on_progress)
  if memory_bytes is None:
    free = remedies.free_memory()
    memory_bytes = None if free is None else int(_SHARE_FOR_CACHE * free)
  else:
    memory_bytes = checked_int("memory_bytes", memory_bytes, at_least=0)
  measured = measuring.measure(
    pipeline, step, seconds=seconds, on_progress=on_progress or _log
  )
  return conclude(
    measured, max_factor=max_factor, memory_bytes=memory_bytes
  )


def conclude(
  measured: Measurements, *, max_factor: float, memory_bytes: int | None
) -> Advice:
  """Returns the advice that follows from what was measured."""
  choices = choosing.choices(measured, max_factor)
  recommended = choosing.recommended(choices)
  return Advice(
    measured=measured,
    choices=tuple(choices),
    recommended=recommended,
    remedies=tuple(remedies.remedies(measured, memory_bytes)),
    watch=tuple(remedies.watch(measured, recommended)),
  )


def _step(train_step: Any, step_seconds: Any) -> Callable[[Any], Any]:
  """Returns what is called with a batch, as one argument."""
  if (train_step is None) == (step_seconds is None):
    raise ValueError(
      "give one of `train_step` and `step_seconds`, got"
      f" {train_step!r} and {step_seconds!r}"
    )
  if train_step is None:
    check_number("step_seconds", step_seconds, above=0)
    return lambda batch: time.sleep(step_seconds)
  check_function("train_step", train_step)
  if hasattr(train_step, "train_on_batch"):  # A model only predicts if called.
    raise ValueError(
      "`train_step` must do a training step, as `model.train_on_batch` does,"
      f" got the {type(train_step).__name__} itself"
    )

  def step(batch: Any) -> None:
    # As `Dataset.map` does: it leaves a named tuple in one piece.
    if type(batch) is tuple and _takes(train_step, len(batch)):
      train_step(*batch)
    else:
      train_step(batch)

  return step


def _takes(function: Callable, count: int) -> bool:
  try:
    inspect.signature(function).bind(*range(count))
  except TypeError:
    return False
  except ValueError:  # Some builtins don't tell.
    return True
  return True


def _log(line: str) -> None:
  _logger.info("tfecho: advise: %s", line)
