"""Optimizers by name, with one meaning on Keras 3 and Keras 2.15.

    optimizers.get("sgd", learning_rate=0.1, momentum=0.9, weight_decay=5e-4)
    optimizers.get("lamb", learning_rate=schedules.cosine(0.01, "10_000ba"))
    optimizers.get("lookahead(adamw)", learning_rate=1e-3, sync_period=5)
    optimizers.get("moving_average(lamb)", ema_momentum=0.999)

Names are those of Keras, in any case, with or without underscores, and

    name               where                what
    lamb               Keras 3, addons      layer-wise rates, arXiv 1904.00962
    lazy_adam          addons               Adam; rows without a gradient rest
    novograd           addons               layer-wise moments, arXiv 1905.11286
    lookahead(...)     addons               slow weights, arXiv 1907.08610
    swa(...)           addons               mean weights, arXiv 1803.05407
    moving_average()   Keras 3, addons      of the weights, as Keras' `use_ema`
    addons_adamw       addons               AdamW, with the decay of addons
    addons_sgdw        addons               SGD, likewise

"addons" is tensorflow-addons, which needs Keras 2.15. It is imported only for
a name that Keras has not.

**Weight decay** is that of Keras everywhere: before an update, each weight w
becomes w - learning_rate * weight_decay * w. tensorflow-addons decays otherwise
by itself: its AdamW and SGDW by weight_decay * w, whatever the learning rate
is, hence their names here; its LAMB inside of what the ratio of norms scales,
as in the paper; its NovoGrad inside of the momentum.

**Averages** - `moving_average` and `swa` - are what a model is validated with,
and ends with, if `fit` is given the callback `AveragedWeights`; `train` adds
it. Keras 2.15 has a `use_ema`, too, which begins with the weights before the
first step, and not behind it, as Keras 3 does: there the one of addons is used.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import math
import numbers
import platform
import re
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

KERAS_3 = hasattr(keras, "ops")

# What tensorflow-addons can optimize with, or wrap. Of these, Keras 2.15 has
# its own `sgd`, `adam` and `adamw`.
ADDONS = (
  "sgd",
  "adam",
  "adamw",
  "lamb",
  "lazy_adam",
  "novograd",
  "addons_adamw",
  "addons_sgdw",
)

# What can be put on top, and the options that it takes.
WRAPPERS = {
  "lookahead": ("sync_period", "slow_step_size"),
  "moving_average": ("ema_momentum",),
  "swa": ("start_averaging", "average_period"),
}
_AVERAGES = ("moving_average", "swa")


def get(
  name: str,
  *,
  learning_rate: Any = None,
  weight_decay: float | None = None,
  **options: Any,
) -> Any:
  """Returns a new optimizer.

  ```python
  from tfecho.training import optimizers, schedules

  rate = schedules.cosine(0.1, "1_000ba", warmup="100ba")
  optimizer = optimizers.get("sgd", learning_rate=rate, weight_decay=5e-4)
  assert optimizer.weight_decay == 5e-4

  try:
    optimizers.get("lookahead(rmsprop)")
  except ValueError as error:
    assert "'lookahead' takes one of" in str(error)
  ```

  Args:
    name: as the module lists them, such as "adamw", "lookahead(adamw)" or
      "moving_average(lookahead(adamw))". An average is outermost.
    learning_rate: a number or a schedule; None for the default of `name`.
    weight_decay: what is taken off a weight before an update, divided by the
      weight and by the learning rate. Of `addons_adamw` and `addons_sgdw`,
      divided by the weight only. None for the default: 0.004 for AdamW, else
      none.
    **options: of the optimizer, as Keras or tensorflow-addons name them, such
      as `momentum`, `beta_1`, `clipnorm`. Of `lookahead`: `sync_period`, 6
      steps by default, and `slow_step_size`, 0.5. Of `moving_average`:
      `ema_momentum`, 0.99. Of `swa`: `start_averaging`, after 0 steps, and
      `average_period`, 10 steps.

  Returns:
    A `keras.optimizers.Optimizer`; one of `keras.optimizers.legacy` if it comes
    from tensorflow-addons.

  Raises:
    ValueError: if there is no such optimizer, or not on this TensorFlow; or if
      an option is none of its, or has a value that makes no sense.
  """
  wrappers, base = _parsed(name)
  given = {"learning_rate": learning_rate, "weight_decay": weight_decay}
  options.update({
    option: _number(option, value)
    for option, value in given.items()
    if value is not None
  })
  make = _of_keras(wrappers, base) or _of_addons(name, wrappers, base)
  try:
    return make(**options)
  except (TypeError, ValueError) as error:
    raise ValueError(f"`optimizer` {name!r}: {error}") from error


def names() -> list[str]:
  """Returns every name that there is, on whatever TensorFlow."""
  on_top = [f"{wrapper}(...)" for wrapper in WRAPPERS]
  return sorted({*_keras_classes(), *ADDONS}) + on_top


def build(optimizer: Any, variables: list[Any]) -> None:
  """Makes the variables of an optimizer, before its first step does.

  Args:
    optimizer: one of Keras or of tensorflow-addons, or what scales its loss.
    variables: what it is going to train.
  """
  if getattr(optimizer, "built", False):
    return
  if _is_legacy(optimizer):
    optimizer._create_all_weights(variables)
  else:
    optimizer.build(variables)


def inner(optimizer: Any) -> Any:
  """Returns what an optimizer that scales the loss has inside, or itself."""
  return getattr(optimizer, "inner_optimizer", optimizer)


def micro_steps(optimizer: Any) -> Any:
  """Returns the variable that counts the steps of a learning rate.

  Where gradients are accumulated, every batch of a group is one. It is saved
  with the optimizer.
  """
  optimizer = inner(optimizer)
  if getattr(optimizer, "gradient_accumulation_steps", None):
    return optimizer._iterations  # `iterations` are groups.
  return optimizer.iterations


def _is_legacy(optimizer: Any) -> bool:
  """Whether it is of the kind that tensorflow-addons has."""
  return not isinstance(optimizer, keras.optimizers.Optimizer)


# --- Names ------------------------------------------------------------------


def _parsed(name: Any) -> tuple[list[str], str]:
  """What is on top, the outermost first, and what it is on top of."""
  wrappers = []
  inner = name
  while isinstance(inner, str) and (
    match := re.fullmatch(r"(\w+)\((.*)\)", inner.strip())
  ):
    wrappers.append(_known(match[1], WRAPPERS, name))
    inner = match[2]
  base = _known(inner, {**dict.fromkeys(ADDONS), **_keras_classes()}, name)
  for outer, wrapper in zip(wrappers, wrappers[1:]):
    if wrapper in _AVERAGES or wrapper == outer:
      raise ValueError(
        f"`optimizer` must have an average outermost, and everything once, got"
        f" {name!r}"
      )
  return wrappers, base


def _known(name: Any, table: Any, whole: Any) -> str:
  """The name in `table` that is meant."""
  for known in table:
    if isinstance(name, str) and _plain(name) == _plain(known):
      return known
  raise ValueError(f"`optimizer` must be one of {names()}, got {whole!r}")


def _plain(name: str) -> str:
  return name.strip().replace("_", "").lower()


def _number(option: str, value: Any) -> Any:
  """A float, since tensorflow-addons takes no int, or a schedule."""
  if option == "learning_rate" and callable(value):
    return value
  is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
  if not is_number or not 0 <= value < math.inf:
    raise ValueError(f"`{option}` must be a number from 0 on, got {value!r}")
  return float(value)


# --- Keras ------------------------------------------------------------------


@functools.lru_cache(maxsize=1)
def _keras_classes() -> dict[str, Any]:
  """Keras' optimizers by name; not those that are made of others."""
  return {
    name.lower(): value
    for name, value in vars(keras.optimizers).items()
    if inspect.isclass(value)
    and issubclass(value, keras.optimizers.Optimizer)
    and "learning_rate" in inspect.signature(value).parameters
    and value is not keras.optimizers.Optimizer
  }


def _of_keras(wrappers: list[str], base: str) -> Callable[..., Any] | None:
  """What makes it, or None if Keras does not have it, or with another sense."""
  if base not in _keras_classes():
    return None
  if not wrappers:
    return _keras_classes()[base]
  if KERAS_3 and wrappers == ["moving_average"]:
    return functools.partial(_keras_classes()[base], use_ema=True)
  return None


# --- tensorflow-addons ------------------------------------------------------


def _of_addons(
  name: str, wrappers: list[str], base: str
) -> Callable[..., Any]:
  if base not in ADDONS:
    raise ValueError(
      f"`optimizer` {wrappers[-1]!r} takes one of {list(ADDONS)}, got {name!r}"
    )
  addons = _addons(name)

  def make(**options: Any) -> Any:
    of_wrappers = [
      {key: options.pop(key) for key in WRAPPERS[wrapper] if key in options}
      for wrapper in wrappers
    ]
    return addons.make(base, options, list(zip(wrappers, of_wrappers)))

  return make


def _addons(name: str) -> Any:
  """The module that imports tensorflow-addons, which may not be there."""
  if not KERAS_3:
    try:
      return importlib.import_module("tfecho.training.addons")
    except ModuleNotFoundError as error:
      if error.name != "tensorflow_addons":
        raise
  raise ValueError(
    f"`optimizer` {name!r} is one of tensorflow-addons, which is not here: run"
    " `pip install tfecho[addons]` in an environment of its own with Python"
    " 3.9, 3.10 or 3.11. It takes TensorFlow 2.15.1, with Keras 2.15; this is"
    f" TensorFlow {tf.__version__} with Keras {keras.__version__} on Python"
    f" {platform.python_version()}"
  )
