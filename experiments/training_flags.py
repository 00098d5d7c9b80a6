"""The flags that say how to train, for every script that calls `train`.

```python
flags.adopt_module_key_flags(training_flags)  # `--help` lists them
train(build_model, pipeline, **{**recipe, **training_flags.options()})
```
"""

from __future__ import annotations

import functools
import json
from typing import Any

from absl import flags

from tfecho.training import optimizers
from tfecho.training.harness import LAYOUTS
from tfecho.training.precision import PRECISIONS

OPTIMIZER = flags.DEFINE_string(
  "optimizer",
  None,
  f"Name of the optimizer, without unit, one of {', '.join(optimizers.names())}"
  ", such as 'lookahead(adamw)'; some need the packages of the extra `addons`. "
  "Default: the workload's.",
)
OPTIMIZER_OPTIONS = flags.DEFINE_list(
  "optimizer_options",
  [],
  "Arguments of --optimizer, a comma-separated list of NAME=VALUE, such as "
  "momentum=0.9,weight_decay=5e-4: numbers without unit, or true or false. The "
  "learning rate is none of them.",
)
PRECISION = flags.DEFINE_enum(
  "precision",
  "float32",
  PRECISIONS,
  "What the model computes in, without unit; weights are kept in float32.",
)
LAYOUT = flags.DEFINE_enum(
  "layout",
  None,
  LAYOUTS,
  "Layout of images that the model is converted to, without unit. Default: "
  "the model's own.",
)


def options() -> dict[str, Any]:
  """Returns what these flags say as arguments of `train`.

  Without `optimizer`, if none is named: that is up to the workload.

  Raises:
    ValueError: If there is no such optimizer here, or it has no such options.
  """
  given = {"precision": PRECISION.value, "layout": LAYOUT.value}
  if OPTIMIZER.value is not None:
    given["optimizer"] = _optimizer()
  elif OPTIMIZER_OPTIONS.value:
    raise ValueError("--optimizer_options: must come with --optimizer")
  return given


def _optimizer() -> Any:
  """A function that makes it from a learning rate."""
  arguments = dict(map(_argument, OPTIMIZER_OPTIONS.value))
  make = functools.partial(optimizers.get, OPTIMIZER.value, **arguments)
  try:
    make()  # A mistake is told before anything is trained.
  except ValueError as error:
    raise ValueError(f"--optimizer: {error}") from error
  return make


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
