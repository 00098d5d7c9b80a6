"""Compares training with and without echo on one workload.

  python -m experiments.compare
  python -m experiments.compare --factors=2,4,8 --seeds=5 --measure=target,final
  python -m experiments.compare --measure=time --store_ms=40 \\
    --arms=baseline,cached,after_read,after_decode

Trains every arm under every seed, counts the fresh examples that each needs to
reach a target, and prints a table. In `--output_dir` are then `results.jsonl`
with a line per run, figures, and `report.html` with all of it. Started again
with the same directory, it goes on where it was interrupted.
"""

from __future__ import annotations

import functools
import pathlib

from absl import flags, logging

from experiments import (
  campaign,
  command_line,
  implementations,
  learning_rates,
  planning,
  records,
  report,
  request_flags,
  service_flags,
  workers,
)
from experiments.environment import environment
from experiments.seeds import FIRST_TUNING_SEED
from experiments.settings import RESOLUTIONS
from experiments.store import server_flags, url_flag

flags.adopt_module_key_flags(request_flags)
flags.adopt_module_key_flags(server_flags)
flags.adopt_module_key_flags(url_flag)
_SEEDS = flags.DEFINE_integer(
  "seeds",
  3,
  "Number of seeds, a count of runs per arm; the seeds are 0, 1, 2 and so on, "
  "below those that learning rates are tuned with.",
  lower_bound=1,
  upper_bound=FIRST_TUNING_SEED,
)
_UPSTREAM_MS = flags.DEFINE_float(
  "upstream_ms",
  None,
  "Delay of reading one example, in milliseconds, in extra runs under the "
  "first seed of the baseline, the first echo of --arms and `on_stall`: their "
  "time to the target is compared with the time model. 0: no such runs. "
  "Default: 2, or 0 with --store, --store_ms or --data_service.",
)
_UPSTREAM_JITTER = flags.DEFINE_float(
  "upstream_jitter",
  0.0,
  "How much that delay fluctuates, as its standard deviation over its mean, "
  "without unit; it is drawn anew every 256 examples.",
)
_SCHEDULE_RESOLUTION = flags.DEFINE_list(
  "schedule_resolution",
  ["step"],
  "How often the learning rate falls with --measure=final, a comma-separated "
  f"list of names, without unit, from {', '.join(RESOLUTIONS)}: at every "
  "`step`, or once an `epoch`, which is a pass over the fresh examples.",
)
_FACTOR_SCHEDULE = flags.DEFINE_list(
  "factor_schedule",
  [],
  "Echoing factors that fall, a comma-separated list of pairs FIRST:LAST of "
  "copies per fresh example, such as 4:1: with --measure=final, every echo of "
  "--arms is also run with a factor that falls from the first to the last in a "
  "straight line over the steps, at the learning rate of the first.",
)
_LEARNING_RATES = flags.DEFINE_string(
  "learning_rates",
  None,
  "Path of a JSON file with tuned learning rates (weight change per step, "
  "without unit), made by `python -m experiments.tune`. By default the "
  "recorded one, learning_rates.json beside this script.",
)
_OUTPUT_DIR = flags.DEFINE_string(
  "output_dir",
  "runs/compare",
  "Path of the directory for results, figures and report; runs in it that "
  "belong to this comparison are not repeated.",
)


def main():
  workers.leave_devices()
  with command_line.refusing_in_one_line():
    rates = learning_rates.load(
      _LEARNING_RATES.value or learning_rates.DEFAULT_PATH
    )
    runs = _planned_runs(rates)
    file = _open_results(runs)
  with file:
    campaign.finish(file, runs, processes=request_flags.WORKERS.value)
  print(report.write(file.records, file.path.parent, rates=rates))
  logging.info("%s has all of this", file.path.with_name("report.html"))


def _planned_runs(rates):
  """Returns the runs that the flags ask for, if they make sense."""
  find = functools.partial(learning_rates.find, rates)
  request = request_flags.request(
    seeds=range(_SEEDS.value),
    upstream_ms=_upstream_ms(),
    upstream_jitter=_UPSTREAM_JITTER.value,
    store=url_flag.STORE.value,
    store_ms=server_flags.LATENCY_MS.value,
    store_kb_per_second=server_flags.KB_PER_SECOND.value,
    schedule_resolution=tuple(_SCHEDULE_RESOLUTION.value),
    factor_schedules=_factor_schedules(),
  )
  # Last, since it may compile for a while: a misspelt flag is told before.
  return implementations.resolve(planning.plan(request, find))


def _upstream_ms():
  if _UPSTREAM_MS.value is not None:
    return _UPSTREAM_MS.value
  others = (
    url_flag.STORE,
    server_flags.LATENCY_MS,
    service_flags.DATA_SERVICE,
  )
  return 2.0 if all(flag.value is None for flag in others) else 0.0


def _factor_schedules():
  schedules = []
  for text in _FACTOR_SCHEDULE.value:
    pair = command_line.numbers("factor_schedule", text.split(":"))
    if len(pair) != 2:
      raise ValueError(f"--factor_schedule: must be FIRST:LAST, got {text}")
    schedules.append(pair)
  return tuple(schedules)


def _open_results(runs):
  """Opens the file of results, if what is in it can stand beside these runs."""
  with command_line.blaming("output_dir", OSError):
    file = records.RecordFile(pathlib.Path(_OUTPUT_DIR.value, "results.jsonl"))
  records.check_compatible(file, runs, environment())
  return file


if __name__ == "__main__":
  command_line.run(main, goes_on=lambda: True)
