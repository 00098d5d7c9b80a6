"""Finds the learning rate of every arm, each with the same effort.

  python -m experiments.tune --factors=2,4,8 --measure=target,final

Every arm, the baseline like all others, is trained with the same rates, under
seeds that comparisons do not use: a quasi-random sequence between two bounds,
which covers them evenly however many trials there are, or a grid. What is
looked for is what is compared: few fresh examples, as their geometric mean over
all targets and seeds, or a good metric at the end of a cosine schedule. All
targets, because when the hardest is reached is a matter of luck. The rates go
into a file, with what each trial gave; the trials into `--output_dir`, from
where an interrupted search goes on.
"""

from __future__ import annotations

import collections
import math
import pathlib
import statistics
import warnings

import optuna
from absl import flags

from experiments import (
  campaign,
  command_line,
  curves,
  implementations,
  learning_rates,
  planning,
  records,
  request_flags,
  workers,
)
from experiments.environment import environment
from experiments.seeds import FIRST_TUNING_SEED

_MISSED = 2

_SEQUENCE = 0  # Of the quasi-random rates: which of them, without unit.

optuna.logging.set_verbosity(optuna.logging.WARNING)

flags.adopt_module_key_flags(request_flags)
_TRIALS = flags.DEFINE_integer(
  "trials",
  8,
  "Number of learning rates to try, a count per arm, with each seed.",
  lower_bound=1,
)
_LOWEST_RATE = flags.DEFINE_float(
  "lowest_rate",
  2.5e-4,
  "Learning rates to try are at least so high, in weight change per step, "
  "without unit.",
)
_HIGHEST_RATE = flags.DEFINE_float(
  "highest_rate",
  8e-3,
  "Learning rates to try are at most so high, in weight change per step, "
  "without unit.",
)
_GRID = flags.DEFINE_list(
  "grid",
  None,
  "Learning rates to try in place of those, a comma-separated list of weight "
  "changes per step, without unit.",
)
_SEEDS = flags.DEFINE_integer(
  "seeds",
  3,
  "Number of seeds, a count of runs per arm and rate, from "
  f"{FIRST_TUNING_SEED} up.",
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
  workers.leave_devices()
  rates = pathlib.Path(_LEARNING_RATES.value or learning_rates.DEFAULT_PATH)
  with command_line.refusing_in_one_line():
    _check_writable(rates)
    trials = planned_trials()
    file = _open_trials(trials)
  with file:
    campaign.finish(file, trials, processes=request_flags.WORKERS.value)
  wanted = set(trials)
  groups = collections.defaultdict(list)
  for record in file.records:
    settings = records.settings_of(record)
    if settings in wanted:
      groups[settings.measure, settings.arm].append(record)
  learning_rates.update(rates, [entry(group) for group in groups.values()])


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
    "optimizer": settings.training.optimizer,
    "augmentation": settings.augmentation,
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
  """What the trials of a rate gave: fresh examples, or the metric.

  None if one of them diverged.
  """
  if trials[0]["settings"]["measure"] != "final":
    return round(_cost(trials))
  metric = _final_metric(trials)
  return round(metric, 4) if math.isfinite(metric) else None


def _final_metric(trials):
  return statistics.fmean(trial["counts"]["metric"] for trial in trials)


def _fresh(trial):
  """Returns the fresh examples consumed to each target, from easy to hard.

  A target that was missed counts as `_MISSED` times the whole run: it must cost
  more than to reach it at the end, and by how much nobody knows.
  """
  whole = _MISSED * trial["counts"]["consumed"]
  reached = (curves.reached(trial, x) for x in trial["settings"]["targets"])
  return [there["consumed"] if there else whole for there in reached]


def quasi_random_rates(count, *, lowest, highest):
  """Returns so many rates between two bounds, evenly spread in their logarithm.

  Always the same ones: the first of a Halton sequence. More trials go on with
  it. Rounded to three digits, as they are shown.
  """
  space = {
    "learning_rate": optuna.distributions.FloatDistribution(
      lowest, highest, log=True
    )
  }
  with warnings.catch_warnings():
    # In Optuna since 2021.
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    sampler = optuna.samplers.QMCSampler(
      qmc_type="halton", scramble=True, seed=_SEQUENCE
    )
  study = optuna.create_study(sampler=sampler)
  rates = []
  for _ in range(count):
    trial = study.ask(space)
    rates.append(float(f"{trial.params['learning_rate']:.3g}"))
    study.tell(trial, 0.0)  # The sequence does not depend on results.
  return rates


def _rates():
  if _GRID.value is not None:
    return _checked(command_line.numbers("grid", _GRID.value))
  lowest, highest = _LOWEST_RATE.value, _HIGHEST_RATE.value
  if not 0 < lowest < highest < float("inf"):
    raise ValueError(
      "--lowest_rate: must be above 0 and below --highest_rate, got "
      f"{lowest:g} and {highest:g}"
    )
  return quasi_random_rates(_TRIALS.value, lowest=lowest, highest=highest)


def _checked(rates):
  are_rates = all(0 < rate < float("inf") for rate in rates)
  if not rates or not are_rates or len(set(rates)) < len(rates):
    raise ValueError(
      "--grid: must be finite rates above 0, each once, got "
      f"{','.join(_GRID.value) or 'none'}"
    )
  return rates


def planned_trials():
  """Returns the `RunSettings` of all trials: as many, and alike, for each arm.

  Raises:
    ValueError: If the flags make no sense.
  """
  first = FIRST_TUNING_SEED
  request = request_flags.request(seeds=range(first, first + _SEEDS.value))
  trials = [
    trial
    for rate in _rates()
    for trial in planning.plan(request, lambda *_, rate=rate, **__: rate)
  ]
  return implementations.resolve(trials)


def _check_writable(rates):
  """Finds out before any trial what would stop the search behind the last."""
  with command_line.blaming("learning_rates", OSError):
    rates.parent.mkdir(parents=True, exist_ok=True)
  if rates.exists():
    learning_rates.load(rates)


def _open_trials(trials):
  with command_line.blaming("output_dir", OSError):
    file = records.RecordFile(pathlib.Path(_OUTPUT_DIR.value, "trials.jsonl"))
  varying = (*records.VARYING, "learning_rate")
  records.check_compatible(file, trials, environment(), varying=varying)
  return file


if __name__ == "__main__":
  command_line.run(main, goes_on=lambda: True)
