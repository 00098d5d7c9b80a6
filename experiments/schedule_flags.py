"""The flags that say how the learning rate of a recipe goes.

```python
flags.adopt_module_key_flags(schedule_flags)  # `--help` lists them
train(..., learning_rate=schedule_flags.learning_rate(workload))
```
"""

from __future__ import annotations

from absl import flags

from experiments import command_line
from tfecho.training import Duration, schedules
from tfecho.training.schedules import Schedule

_SHAPES = {
  "constant": schedules.constant,
  "linear": schedules.linear,
  "cosine": schedules.cosine,
}

LEARNING_RATE = flags.DEFINE_float(
  "learning_rate",
  None,
  "Peak of the learning rate, in weight change per step without unit. Default: "
  "the workload's.",
)
SCHEDULE = flags.DEFINE_enum(
  "schedule",
  None,
  list(_SHAPES),
  "How the learning rate falls from its peak to zero, if it does, a name, "
  "without unit. Default: the workload's.",
)
WARMUP = flags.DEFINE_string(
  "warmup",
  None,
  "Duration, with its unit, in which the learning rate rises to its peak, such "
  "as 5ep or 0.05dur (of the training); a part of the schedule. Default: the "
  "workload's.",
)
SCHEDULE_RESOLUTION = flags.DEFINE_enum(
  "schedule_resolution",
  None,
  schedules.RESOLUTIONS,
  "How often the learning rate changes, a name, without unit: at every `step`, "
  "or once an `epoch`, which is a pass over the fresh examples. Default: the "
  "workload's.",
)


def learning_rate(workload):
  """Returns the schedule of a workload, with what the flags change in it.

  Raises:
    ValueError: If a flag is no rate or no duration.
  """
  rate = workload.learning_rate
  if not isinstance(rate, Schedule):
    rate = schedules.constant(rate)
  if SCHEDULE.value is not None:
    rate = _SHAPES[SCHEDULE.value](rate.peak, warmup=rate.warmup)
  if WARMUP.value is not None:
    Duration.parse(WARMUP.value, argument="--warmup")
  changed = {
    "peak": LEARNING_RATE.value,
    "warmup": WARMUP.value,
    "resolution": SCHEDULE_RESOLUTION.value,
  }
  given = {name: v for name, v in changed.items() if v is not None}
  with command_line.blaming("learning_rate"):
    return Schedule.from_config({**rate.get_config(), **given})
