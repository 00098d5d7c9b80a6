"""How to train, whatever is trained: what flags say, in types that JSON has.

```python
how = TrainingSettings(precision="mixed_bfloat16", optimizer="lamb")
train(build_model, pipeline, **{**recipe, **how.options()})
```
"""

from __future__ import annotations

import dataclasses
import functools
import json
from typing import Any

import tensorflow as tf

from experiments import command_line
from tfecho.training import optimizers

STRATEGIES = ("mirrored",)


@dataclasses.dataclass(frozen=True)
class TrainingSettings:
  """Arguments of `tfecho.training.train` that fit every workload.

  Attributes:
    precision: What the model computes in.
    layout: What images are converted to; None for the model's own.
    optimizer: Name of the optimizer; None for the workload's.
    optimizer_options: Its arguments, each as text, such as "momentum=0.9".
    strategy: "mirrored" for all accelerators of this machine, None for one.
  """

  precision: str = "float32"
  layout: str | None = None
  optimizer: str | None = None
  optimizer_options: tuple[str, ...] = ()
  strategy: str | None = None

  def options(self) -> dict[str, Any]:
    """Returns the arguments of `train`.

    Without `optimizer`, if none is named: that is up to the workload.

    Raises:
      ValueError: If there is no such optimizer here, or it has no such options.
    """
    given = {
      "precision": self.precision,
      "layout": self.layout,
      "strategy": _strategy(self.strategy),
    }
    if self.optimizer is not None:
      given["optimizer"] = self._optimizer()
    elif self.optimizer_options:
      raise ValueError("--optimizer_options: must come with --optimizer")
    return given

  def _optimizer(self) -> Any:
    """A function that makes it from a learning rate."""
    arguments = dict(map(_argument, self.optimizer_options))
    make = functools.partial(optimizers.get, self.optimizer, **arguments)
    with command_line.blaming("optimizer"):
      make()  # A mistake is told before anything is trained.
    return make

  def __str__(self) -> str:
    """What differs from what is usual, or nothing."""
    usual = TrainingSettings()
    changed = [
      f"{field.name}={getattr(self, field.name)}"
      for field in dataclasses.fields(self)
      if getattr(self, field.name) != getattr(usual, field.name)
    ]
    return ", ".join(changed)

  def to_dict(self) -> dict[str, Any]:
    """Returns the settings in the types that JSON has."""
    options = list(self.optimizer_options)
    return {**dataclasses.asdict(self), "optimizer_options": options}

  @classmethod
  def from_dict(cls, fields: dict[str, Any]) -> TrainingSettings:
    """Returns the settings that `to_dict` was called on."""
    options = tuple(fields.get("optimizer_options", ()))
    return cls(**{**fields, "optimizer_options": options})


def _strategy(name: str | None) -> Any:
  return tf.distribute.MirroredStrategy() if name == "mirrored" else None


def _argument(text: str) -> tuple[str, Any]:
  name, _, value = text.partition("=")
  try:
    parsed = json.loads(value)
  except ValueError:
    parsed = None
  allowed = isinstance(parsed, (bool, int, float))
  if not name.isidentifier() or not allowed or name == "learning_rate":
    raise ValueError(f"--optimizer_options: must be NAME=VALUE, got {text!r}")
  return name, parsed
