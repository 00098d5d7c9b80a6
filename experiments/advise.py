"""Says where to echo in a workload, and how much, before anything is trained.

  python -m experiments.advise --workload=resnet32_cifar10 --upstream_ms=2
  python -m experiments.advise --step_ms=1.5 --upstream_ms=0.2

Times the workload's stages and its training step for some seconds, and prints
what follows: whether training waits for its input, where, and what an echo in
each place would make of it. It trains nothing that is kept.
"""

from __future__ import annotations

import json
import pathlib

from absl import flags, logging

import tfecho
from experiments import (
  batch_size_flag,
  command_line,
  feeding,
  training_flags,
  workload_flags,
)
from experiments.upstream import Upstream
from tfecho.training.harness import compiled

flags.adopt_module_key_flags(workload_flags)
flags.adopt_module_key_flags(batch_size_flag)
flags.adopt_module_key_flags(training_flags)
_UPSTREAM_MS = flags.DEFINE_float(
  "upstream_ms",
  2.0,
  "Delay of reading one example, in milliseconds, one example after the other.",
  lower_bound=0.0,
)
_STEP_MS = flags.DEFINE_float(
  "step_ms",
  None,
  "Time of a training step on an accelerator, in milliseconds. Default: the "
  "workload's own step, on this machine.",
)
_MAX_FACTOR = flags.DEFINE_float(
  "max_factor", 8.0, "Largest echoing factor, in copies per fresh example."
)
_SECONDS = flags.DEFINE_float(
  "seconds", 10.0, "How long to measure, in seconds, about."
)
_OUTPUT = flags.DEFINE_string(
  "output", None, "Path of a file to write everything to, as JSON."
)


def main():
  workload_flags.use_data_dir()
  with command_line.refusing_in_one_line():
    workload = workload_flags.workload()
    advice = tfecho.advise(
      _pipeline(workload),
      max_factor=_MAX_FACTOR.value,
      seconds=_SECONDS.value,
      on_progress=logging.info,
      **_step(workload),
    )
  if _OUTPUT.value:
    path = pathlib.Path(_OUTPUT.value)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(advice.to_dict(), indent=2) + "\n")
  print(advice)


def _pipeline(workload):
  return feeding.pipeline(
    workload,
    workload.train().enumerate(),
    Upstream(_UPSTREAM_MS.value / 1_000),
    batch_size=batch_size_flag.BATCH_SIZE.value or workload.batch_size,
    seed=0,
  )


def _step(workload):
  """The argument of `tfecho.advise` that says what a step takes."""
  if _STEP_MS.value is not None:
    return {"step_seconds": _STEP_MS.value / 1_000}
  model = model_of(workload)

  def train_step(ordinals, example):
    del ordinals
    model.train_on_batch(*example)

  return {"train_step": train_step}


def model_of(workload):
  """Returns the model that a training with these flags would train.

  Raises:
    ValueError: If the flags make no sense.
  """
  how = {"optimizer": workload.optimizer, **training_flags.settings().options()}
  if how["strategy"] is not None:
    raise ValueError(
      "--strategy: a step is timed on one device; say by --step_ms what one"
      " takes on all"
    )
  return compiled(
    workload.model,
    how["optimizer"](learning_rate=0.0),
    precision=how["precision"],
    layout=how["layout"],
    loss=workload.loss(),
    jit_compile=False,
  )


if __name__ == "__main__":
  command_line.run(main)
