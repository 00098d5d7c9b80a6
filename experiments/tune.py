"""Finds the learning rate of every arm, each with the same effort.

  python -m experiments.tune --factors=2,4,8 --measure=target,final

Every arm is trained with every rate of one grid, under seeds that comparisons
do not use. What is looked for is what is compared: few fresh examples, as their
geometric mean over all targets and seeds, or a good metric at the end of a
cosine schedule. All targets, because when the hardest is reached is a matter of
luck. The rates go into a file, with what each trial gave; the trials into
`--output_dir`, from where an interrupted search goes on.
"""

from __future__ import annotations

import collections
import pathlib
import statistics

from absl import flags

from experiments import (
  campaign,
  command_line,
  implementations,
  learning_rates,
  planning,
  records,
  request_flags,
)
from experiments.environment import environment

# Above the seeds of any comparison, which count from 0.
_FIRST_SEED = 1_000

_MISSED = 2

flags.adopt_module_key_flags(request_flags)
_GRID = flags.DEFINE_list(
  "grid",
  ["0.0005", "0.001", "0.002", "0.004"],
  "Learning rates to try, a comma-separated list of weight changes per step, "
  "without unit.",
)
_SEEDS = flags.DEFINE_integer(
  "seeds",
  3,
  f"Number of seeds, a count of runs per arm and rate, from {_FIRST_SEED} up.",
  lower_bound=1,
)
_OUTPUT_DIR = flags.DEFINE_string(
  "output_dir",
  "runs/tune",
  "Path of the directory for the trials; those in it are not repeated.",
)
_LEARNING_RATES = flags.DEFINE_string(
  "learning_rates",
  None,
  "Path of the JSON file that the rates are written to; entries of other "
  "workloads, measures and arms stay in it. By default the one that "
  "comparisons read, learning_rates.json beside this script.",
)


def main():
  with command_line.refusing_in_one_line():
    trials = _planned_trials()
    file = _open_trials(trials)
  with file:
    campaign.finish(file, trials, processes=request_flags.WORKERS.value)
  wanted = set(trials)
  groups = collections.defaultdict(list)
  for record in file.records:
    settings = records.settings_of(record)
    if settings in wanted:
      groups[settings.measure, settings.arm].append(record)
  learning_rates.update(
    _LEARNING_RATES.value or learning_rates.DEFAULT_PATH,
    [entry(group) for group in groups.values()],
  )


def entry(trials):
  """Returns what the trials of one arm say, for the file of learning rates.

  Args:
    trials: Records of runs that differ in learning rate and seed.
  """
  settings = records.settings_of(trials[0])
  by_rate = collections.defaultdict(list)
  for trial in trials:
    by_rate[trial["settings"]["learning_rate"]].append(trial)
  rates = sorted(by_rate)
  best = min(rates, key=lambda rate: _cost(by_rate[rate]))
  return {
    "workload": settings.workload,
    "preset": settings.preset,
    "batch_size": settings.batch_size,
    "measure": settings.measure,
    "kind": settings.arm.kind,
    "factor": settings.arm.factor,
    "learning_rate": best,
    "trials": {f"{rate:g}": _shown(by_rate[rate]) for rate in rates},
  }


def _cost(trials):
  """What to minimize."""
  if trials[0]["settings"]["measure"] == "final":
    metric = _final_metric(trials)
    return -metric if trials[0]["metric"]["maximize"] else metric
  return statistics.geometric_mean(
    fresh for trial in trials for fresh in _fresh(trial)
  )


def _shown(trials):
  """What the trials of a rate gave: the metric, or fresh examples."""
  if trials[0]["settings"]["measure"] == "final":
    return round(_final_metric(trials), 4)
  return round(_cost(trials))


def _final_metric(trials):
  return statistics.fmean(trial["counts"]["metric"] for trial in trials)


def _fresh(trial):
  """Returns the fresh examples consumed to each target, from easy to hard.

  A target that was missed counts as `_MISSED` times the whole run: it must cost
  more than to reach it at the end, and by how much nobody knows.
  """
  whole = _MISSED * trial["counts"]["consumed"]
  reached = trial["to_target"].values()
  return [columns["consumed"] if columns else whole for columns in reached]


def _planned_trials():
  request = request_flags.request(
    seeds=range(_FIRST_SEED, _FIRST_SEED + _SEEDS.value)
  )
  trials = [
    trial
    for rate in request_flags.numbers("grid", _GRID.value)
    for trial in planning.plan(request, lambda *_, rate=rate, **__: rate)
  ]
  return implementations.resolve(trials)


def _open_trials(trials):
  try:
    file = records.RecordFile(pathlib.Path(_OUTPUT_DIR.value, "trials.jsonl"))
  except OSError as error:
    raise ValueError(f"--output_dir: {error}") from None
  varying = (*records.VARYING, "learning_rate")
  records.check_compatible(file, trials, environment(), varying=varying)
  return file


if __name__ == "__main__":
  command_line.run(main)
