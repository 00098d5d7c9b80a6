"""The flags that say what to compare, for every script that trains arms.

```python
flags.adopt_module_key_flags(request_flags)  # `--help` lists them
runs = planning.plan(request_flags.request(seeds=(0, 1, 2)), rate_of)
```
"""

from __future__ import annotations

from absl import flags

from experiments import (
  batch_size_flag,
  command_line,
  echo_flags,
  service_flags,
  training_flags,
  workload_flags,
)
from experiments.arms import kinds
from experiments.request import MEASURED, Request

flags.adopt_module_key_flags(workload_flags)
flags.adopt_module_key_flags(batch_size_flag)
flags.adopt_module_key_flags(echo_flags)
flags.adopt_module_key_flags(training_flags)
flags.adopt_module_key_flags(service_flags)
_ARMS = flags.DEFINE_list(
  "arms",
  None,
  "What to compare, a comma-separated list of names, without unit: the stage "
  "that the echo stands behind, and whether a shuffle buffer stands behind the "
  f"echo. Any of {', '.join(kinds())}. Default: baseline, after_decode, "
  "after_batch and, where there is an augmentation, after_augment.",
)
_FACTORS = flags.DEFINE_list(
  "factors",
  ["4"],
  "Echoing factors, a comma-separated list of numbers of copies per fresh "
  "example, 1 or more; every arm but the baseline and `on_stall`, which makes "
  "up to 8, is run with each.",
)
# As `experiments.run` calls them, which trains one.
flags.DEFINE_alias("arm", "arms")
flags.DEFINE_alias("factor", "factors")
_MEASURE = flags.DEFINE_list(
  "measure",
  ["target"],
  "What to measure, a comma-separated list of names, without unit, from "
  f"{', '.join(MEASURED)}: `target` counts the fresh examples to a target at a "
  "constant learning rate, `final` takes the metric after --final_steps with a "
  "cosine schedule, `time` takes only the time to the target behind a slow "
  "upstream, of every arm and seed.",
)
_TARGETS = flags.DEFINE_list(
  "targets",
  None,
  "Values of the validation metric, in its unit (accuracy: a share from 0 to "
  "1), a comma-separated list from easy to hard; a run ends at the last. "
  "Default: the workload's.",
)
_MAX_STEPS = flags.DEFINE_integer(
  "max_steps",
  None,
  "Training steps after which a target counts as not reached. Default: the "
  "workload's.",
)
_FINAL_STEPS = flags.DEFINE_integer(
  "final_steps", 400, "Training steps of each run with --measure=final."
)
_EVALUATION_STEPS = flags.DEFINE_integer(
  "evaluation_steps",
  None,
  "Training steps from one evaluation to the next. Default: the workload's.",
)


WORKERS = flags.DEFINE_integer(
  "workers",
  2,
  "Number of processes that train side by side, each with one thread per "
  "operation.",
  lower_bound=1,
)


def request(*, seeds, upstream_ms=0.0, **options):
  """Returns the `Request` that the flags make.

  Args:
    seeds: Seeds of the runs.
    upstream_ms: See `Request`.
    **options: What else `Request` has a default for.

  Raises:
    ValueError: If a list has something else than numbers where it needs them.
  """
  workload_flags.use_data_dir()
  targets = _TARGETS.value and command_line.numbers("targets", _TARGETS.value)
  return Request(
    workload=workload_flags.WORKLOAD.value,
    preset=workload_flags.PRESET.value,
    arms=None if _ARMS.value is None else tuple(_ARMS.value),
    factors=command_line.numbers("factors", _FACTORS.value),
    seeds=tuple(seeds),
    measure=tuple(_MEASURE.value),
    targets=targets,
    max_steps=_MAX_STEPS.value,
    final_steps=_FINAL_STEPS.value,
    evaluation_steps=_EVALUATION_STEPS.value,
    batch_size=batch_size_flag.BATCH_SIZE.value,
    echo_buffer=echo_flags.ECHO_BUFFER.value,
    upstream_ms=upstream_ms,
    implementation=echo_flags.IMPLEMENTATION.value,
    training=training_flags.settings(),
    augmentation=workload_flags.AUGMENTATION.value,
    service_echo=service_flags.echo(),
    **options,
  )
