"""The flags that say how to train, for every script that trains.

```python
flags.adopt_module_key_flags(training_flags)  # `--help` lists them
how = training_flags.settings()
train(build_model, pipeline, **{**recipe, **how.options()})
```
"""

from __future__ import annotations

from absl import flags

from experiments.training_settings import STRATEGIES, TrainingSettings
from tfecho.training import optimizers
from tfecho.training.harness import LAYOUTS
from tfecho.training.precision import PRECISIONS

_OPTIMIZER = flags.DEFINE_string(
  "optimizer",
  None,
  f"Name of the optimizer, without unit, one of {', '.join(optimizers.names())}"
  ", such as 'lookahead(adamw)'; some need the packages of the extra `addons`. "
  "Default: the workload's.",
)
_OPTIMIZER_OPTIONS = flags.DEFINE_list(
  "optimizer_options",
  [],
  "Arguments of --optimizer, a comma-separated list of NAME=VALUE, such as "
  "momentum=0.9,weight_decay=5e-4: numbers without unit, or true or false. The "
  "learning rate is none of them.",
)
_PRECISION = flags.DEFINE_enum(
  "precision",
  "float32",
  PRECISIONS,
  "What the model computes in, a name, without unit; weights are kept in "
  "float32.",
)
_LAYOUT = flags.DEFINE_enum(
  "layout",
  None,
  LAYOUTS,
  "Layout of images that the model is converted to, a name, without unit. "
  "Default: the model's own.",
)
_STRATEGY = flags.DEFINE_enum(
  "strategy",
  None,
  STRATEGIES,
  "Where to train, a name, without unit: `mirrored` uses every accelerator of "
  "the machine. Default: one.",
)


def settings() -> TrainingSettings:
  """Returns what the flags say.

  Raises:
    ValueError: If there is no such optimizer here, or it has no such options.
  """
  said = TrainingSettings(
    precision=_PRECISION.value,
    layout=_LAYOUT.value,
    optimizer=_OPTIMIZER.value,
    optimizer_options=tuple(_OPTIMIZER_OPTIONS.value),
    strategy=_STRATEGY.value,
  )
  said.options()
  return said
