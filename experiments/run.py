"""Trains one workload by its recipe, fed as one arm says.

  python -m experiments.run
  python -m experiments.run --arm=after_decode --factor=4 \\
    --precision=mixed_bfloat16 --length=10ep
  python -m experiments.run --workload=resnet50_imagenet --preset=paper \\
    --data_dir=/data --arm=after_decode --factor=2

An epoch is a pass over the fresh examples. After each, the metric of the
workload is measured, a line added to `epochs.csv`, and a backup made: started
again with the same flags, the training goes on where it was interrupted. At the
end, `result.json` has what it came to. `experiments.compare` compares arms.

With `--strategy` or `--data_service` there are no backups, since replicas and
workers keep their position in the data to themselves.
"""

from __future__ import annotations

import functools
import json
import pathlib

import keras
from absl import flags, logging

from experiments import (
  arms,
  batch_size_flag,
  command_line,
  echo_flags,
  feeding,
  files,
  implementations,
  schedule_flags,
  served,
  service_flags,
  training_flags,
  workload_flags,
)
from experiments.environment import environment
from experiments.evaluating import Evaluation
from experiments.store import url_flag
from experiments.training_progress import TrainingProgress
from tfecho.training import (
  BackupAndRestore,
  Duration,
  Timeline,
  preflight,
  train,
)

flags.adopt_module_key_flags(workload_flags)
flags.adopt_module_key_flags(batch_size_flag)
flags.adopt_module_key_flags(echo_flags)
flags.adopt_module_key_flags(training_flags)
flags.adopt_module_key_flags(schedule_flags)
flags.adopt_module_key_flags(url_flag)
flags.adopt_module_key_flags(service_flags)
_ARM = flags.DEFINE_enum(
  "arm",
  arms.BASELINE,
  [kind for kind in arms.kinds() if kind != arms.CACHED],
  "Where the echo stands, and whether a shuffle buffer stands behind it, a "
  "name, without unit.",
)
_FACTOR = flags.DEFINE_float(
  "factor",
  2.0,
  "Echoing factor, in copies per fresh example.",
  lower_bound=1.0,
)
_SHUFFLE_BUFFER = flags.DEFINE_integer(
  "shuffle_buffer",
  None,
  "Shuffle buffer before decoding, in records. Default: the workload's.",
  lower_bound=1,
)
_LENGTH = flags.DEFINE_string(
  "length",
  None,
  "Duration of the training with its unit, such as 90ep (passes over the fresh "
  "examples), 10_000ba (steps) or 1e6sp (fresh examples). Default: the "
  "workload's.",
)
_EPOCH = flags.DEFINE_string(
  "epoch",
  "1ep",
  "Duration, with its unit, from one evaluation and backup to the next. With "
  "an echo on stall, an epoch has the steps of a pass without an echo.",
)
_SEED = flags.DEFINE_integer(
  "seed", 0, "Seed of weights, order and augmentation, without unit."
)
_BACKUP_STEPS = flags.DEFINE_integer(
  "backup_steps",
  None,
  "Training steps between backups. Default: one after every epoch.",
  lower_bound=1,
)
_TENSORBOARD = flags.DEFINE_bool(
  "tensorboard", False, "Whether to write logs for TensorBoard, too."
)
_OUTPUT_DIR = flags.DEFINE_string(
  "output_dir", "runs/run", "Path of the directory for curve, logs and backups."
)

# Beside workload and arm, what makes another training of it.
_REMEMBERED = (
  echo_flags.ECHO_BUFFER,
  _SHUFFLE_BUFFER,
  batch_size_flag.BATCH_SIZE,
  _LENGTH,
  _EPOCH,
  schedule_flags.LEARNING_RATE,
  schedule_flags.SCHEDULE,
  schedule_flags.WARMUP,
  schedule_flags.SCHEDULE_RESOLUTION,
  _SEED,
  url_flag.STORE,
)

_SETTINGS = "settings.json"
_CURVE = "epochs.csv"
_RESULT = "result.json"


def main():
  workload_flags.use_data_dir()
  with command_line.refusing_in_one_line():
    workload = url_flag.stored(workload_flags.workload())
    arm = arms.parse(_ARM.value, _FACTOR.value)
    if arm.shuffle or arm.on_stall:
      echo_flags.check_echo_buffer(
        echo_flags.ECHO_BUFFER.value, _batch_size(workload)
      )
    implementation = _implementation(arm)
    service_echo = service_flags.echo()
    how = training_flags.settings()
    plan = {
      "length": _duration(_LENGTH, workload.length),
      "epoch": _duration(_EPOCH),
      "optimizer": workload.optimizer,
      "learning_rate": schedule_flags.learning_rate(workload),
      "timeline": _timeline(workload, arm),
      **how.options(),
    }
    _check_schedule(plan)
    settings = _settings(workload, arm, implementation, how, service_echo)
    output_dir = _output_dir(settings)
    _check_not_begun(output_dir, how, service_echo)
    keras.utils.set_random_seed(_SEED.value)  # The order depends on it.
    batches = _batches(workload, arm, implementation, service_echo)
    data, backups = _with_backups(batches, how, service_echo, output_dir)
    progress = _progress(plan, backups)
  # Not before all has been checked: what is refused is no training to go on.
  files.write_whole(
    output_dir / _SETTINGS, json.dumps(settings, indent=2) + "\n"
  )
  result = train(
    workload.model,
    data,
    loss=workload.loss(),
    callbacks=[
      Evaluation(workload),
      progress,
      *_loggers(output_dir, goes_on=bool(backups)),
      *backups,
    ],
    seed=_SEED.value,
    verbose=0,
    **plan,
  )
  _write(result, output_dir)


def _check_schedule(plan):
  """As `train` would, but in one line."""
  with command_line.blaming("length"):
    timeline = plan["timeline"].lasting(plan["length"])
    steps = timeline.steps(plan["length"])
    preflight.check_schedule(plan["learning_rate"].on(timeline), steps)


def _duration(flag, default=None):
  text = flag.value or default
  return Duration.parse(text, argument=f"--{flag.name}")


def _timeline(workload, arm):
  pace = functools.partial(
    Timeline,
    batch_size=_batch_size(workload),
    fresh_examples=workload.train_examples,
  )
  if not arm.on_stall:
    return pace(factor=arm.factor)
  # How often it repeats is known once it has done so. Until then an epoch has
  # the steps of a pass without an echo.
  return pace(factor=None, steps_per_epoch=pace().steps_per_epoch)


def _progress(plan, backups):
  steps = plan["timeline"].steps
  done = sum(
    backup.initial_epoch * steps(plan["epoch"]) + backup.initial_step
    for backup in backups
  )
  total = steps(plan["length"], argument="--length")
  return TrainingProgress(total, steps_done=done)


def _implementation(arm):
  """That of the echo; what is not echoed is the same with each of them."""
  name = echo_flags.IMPLEMENTATION.value
  return implementations.resolved(name, [arm]) if arm.is_echo else "auto"


def _batch_size(workload):
  return batch_size_flag.BATCH_SIZE.value or workload.batch_size


# --- Where it goes ------------------------------------------------------------


def _settings(workload, arm, implementation, how, service_echo):
  """What makes a training this one; another can't go on with it."""
  return {
    "workload": workload.name,
    "preset": workload.preset,
    "augmentation": workload_flags.AUGMENTATION.value,
    "arm": str(arm),
    "implementation": implementation,
    "service_echo": service_echo,
    **how.to_dict(),
    **{flag.name: flag.value for flag in _REMEMBERED},
  }


def _output_dir(settings):
  """The directory, if what is in it belongs to the same training."""
  path = pathlib.Path(_OUTPUT_DIR.value)
  path.mkdir(parents=True, exist_ok=True)
  if (path / _RESULT).exists():
    raise ValueError(f"--output_dir: {path} has a training that is over")
  known = path / _SETTINGS
  if known.exists():
    with command_line.blaming(f"output_dir: {known}"):
      recorded = json.loads(known.read_text())
    _check_same(recorded, settings, path)
  return path


def _check_same(recorded, settings, path):
  for name, value in settings.items():
    if recorded.get(name) != value:
      raise ValueError(
        f"--output_dir: {path} has a training with {name}="
        f"{recorded.get(name)!r}, this is {value!r}"
      )


def _check_not_begun(output_dir, how, service_echo):
  """Refuses to begin again, over what is there, what can't go on."""
  if _has_backups(how, service_echo):
    return
  curve = output_dir / _CURVE
  if curve.exists() and curve.stat().st_size:
    raise ValueError(
      f"--output_dir: {output_dir} has a training that was interrupted, and"
      " with --strategy or --data_service none can go on"
    )
  logging.warning(
    "no backups are made with --strategy or --data_service: the training can't"
    " go on if it is interrupted"
  )


def _goes_on():
  """Whether the training that the flags ask for can be taken up again."""
  service = service_flags.DATA_SERVICE.value
  return _has_backups(training_flags.settings(), service)


def _has_backups(how, service_echo):
  return how.strategy is None and service_echo is None


def _loggers(output_dir, *, goes_on):
  log = keras.callbacks.CSVLogger(output_dir / _CURVE, append=goes_on)
  if not _TENSORBOARD.value:
    return [log]
  return [log, keras.callbacks.TensorBoard(output_dir / "tensorboard")]


def _write(result, output_dir):
  totals = {
    "steps": result.steps,
    "fresh_examples": result.fresh_examples,
    "seconds": round(result.seconds, 3),
    "val_metric": result.curve[-1]["val_metric"],
    "environment": environment(),
  }
  path = output_dir / _RESULT
  files.write_whole(path, json.dumps(totals, indent=2) + "\n")
  logging.info("%s: %s", path, totals)


# --- What it is fed with ------------------------------------------------------


def _with_backups(batches, how, service_echo, output_dir):
  """The data, and the callback that saves the position in it, if one can."""
  if not _has_backups(how, service_echo):
    return batches, []
  backup = BackupAndRestore(
    output_dir / "backup", data=batches, every_steps=_BACKUP_STEPS.value
  )
  return backup.data, [backup]


def _batches(workload, arm, implementation, service_echo):
  batch_size = _batch_size(workload)
  echo = feeding.echo(
    arm, batch_size=batch_size, echo_buffer=echo_flags.ECHO_BUFFER.value
  )
  pipeline = feeding.plain_pipeline(
    workload,
    batch_size=batch_size,
    shuffle_buffer=_SHUFFLE_BUFFER.value,
    seed=_SEED.value,
  )
  if service_echo is not None:
    service = served.service(service_echo)
    with command_line.blaming("data_service"):
      return service.batches(
        pipeline, arm, implementation=implementation, echo=echo
      )
  return pipeline.dataset(repeat=True, implementation=implementation, **echo)


if __name__ == "__main__":
  command_line.run(main, goes_on=_goes_on)
