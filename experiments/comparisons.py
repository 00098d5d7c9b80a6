"""Which recorded runs compare: those that differ in nothing but the arm.

```python
finished = load(["digits.jsonl", "fashion.jsonl"])
for comparison in split(finished, "target"):
  comparison.name      # "workload=... preset=fashion": how it differs
  comparison.runs
```

A comparison of several batch sizes or buffers is recorded as several files, one
value of the flag each, and read together here. A baseline, which has no buffer,
needs to be recorded with one of them only.

Nor need the processor be the same: it decides how long a run takes, and how it
rounds, which is one more thing that is left to chance. Where runs of several
were timed behind a slow upstream, each of them is a comparison of its own.
"""

from __future__ import annotations

import collections
import dataclasses
import glob
import json

from absl import logging

from experiments import records
from experiments.arms import Arm
from experiments.seeds import FIRST_TUNING_SEED

BUFFER = "echo_buffer"
_PROCESSOR = "cpu"


@dataclasses.dataclass(frozen=True)
class Comparison:
  """Runs of one measure, alike but for what may vary between arms.

  Attributes:
    conditions: What they have in common: settings and environment, by name.
    differing: Names of the conditions in which it differs from the others that
      it was split from.
    runs: Their records.
  """

  conditions: dict
  differing: tuple[str, ...]
  runs: list

  @property
  def name(self):
    """How it differs from the other comparisons, "" if there are none."""
    return self.name_without(())

  def name_without(self, names):
    """Returns the name but for these conditions."""
    return " ".join(
      f"{name}={self.conditions.get(name)}"
      for name in self.differing
      if name not in names
    )


def load(paths):
  """Returns the records in some files, each run once.

  Args:
    paths: Of the files, or patterns such as "results/*.jsonl".

  Raises:
    ValueError: If a line is no record, or one of a trial to find a learning
      rate; the message names file and line.
    OSError: If a file can't be read.
  """
  finished = {}
  for path in _matching(paths):
    loaded = records.load(path)
    _check_no_trials(loaded, path)
    known = len(finished)
    for record in loaded:
      finished.setdefault(_identity(record), record)
    repeated = len(loaded) - (len(finished) - known)
    if repeated:
      logging.warning(
        "%s: %d runs are recorded twice, the first counts", path, repeated
      )
  return list(finished.values())


def _matching(paths):
  for path in paths:
    # A shell leaves patterns in `--results=*.jsonl` as they are.
    yield from sorted(glob.glob(str(path))) or [path]


def _check_no_trials(loaded, path):
  """Refuses runs that a learning rate was chosen by: they show it too good."""
  for number, record in enumerate(loaded, 1):
    seed = record["settings"]["seed"]
    if seed >= FIRST_TUNING_SEED:
      raise ValueError(
        f"{path}:{number}: has seed {seed}, one of those that learning rates"
        " are tuned with"
      )


def split(finished, measure):
  """Returns the comparisons of one measure that runs are, in their order.

  The baseline has no buffer: those that have none of their own get it from one
  that differs in its buffer alone.

  Args:
    finished: List of records.
    measure: One of `settings.MEASURES`.

  Raises:
    ValueError: If runs that are alike had different learning rates.
  """
  alike = collections.defaultdict(list)
  for run in finished:
    if run["settings"]["measure"] == measure:
      alike[_freeze(_conditions(run))].append(run)
  groups = [group for runs in alike.values() for group in _of_one_pace(runs)]
  names = differing([conditions for conditions, _ in groups])
  for _, runs in groups:
    _check_learning_rates(runs)
  found = [Comparison(conditions, names, runs) for conditions, runs in groups]
  return [
    dataclasses.replace(one, runs=one.runs + _baseline_of_others(one, found))
    for one in found
  ]


def without(comparison, names):
  """Returns the other conditions of a comparison, ready to be compared."""
  return _freeze(
    {n: v for n, v in comparison.conditions.items() if n not in names}
  )


def differing(conditions):
  """Returns the names of the conditions that are not the same for all.

  Args:
    conditions: List of `Comparison.conditions`.
  """
  names = dict.fromkeys(name for one in conditions for name in one)
  return tuple(
    name
    for name in names
    if len({json.dumps(one.get(name)) for one in conditions}) > 1
  )


def processors(runs):
  """Returns the names of the processors that runs were made on, each once."""
  return tuple(
    dict.fromkeys(str(run["environment"].get(_PROCESSOR)) for run in runs)
  )


def versions(run):
  """Returns what a run was made under, but for the processor."""
  return {n: v for n, v in run["environment"].items() if n != _PROCESSOR}


def _baseline_of_others(comparison, others):
  """That of the first that differs in its buffer alone, if it has none."""
  rest = without(comparison, (BUFFER,))
  for other in [comparison, *others]:
    runs = [run for run in other.runs if _arm(run) == Arm()]
    if runs and without(other, (BUFFER,)) == rest:
      return [] if other is comparison else runs
  return []


def _arm(run):
  return records.settings_of(run).arm


def _of_one_pace(runs):
  """Conditions and runs: of all that are alike, or of each processor."""
  timed = [run for run in runs if not records.settings_of(run).is_fast]
  if len(processors(timed)) < 2:
    return [(_conditions(runs[0]), runs)]
  return [
    (
      {**_conditions(runs[0]), _PROCESSOR: processor},
      [run for run in runs if processors([run]) == (processor,)],
    )
    for processor in processors(runs)
  ]


def _identity(record):
  settings = records.settings_of(record)
  under = versions(record) if settings.is_fast else record["environment"]
  return _freeze({"settings": settings.to_dict(), "under": under})


def _conditions(run):
  """Settings, those included that older records do without, and versions."""
  settings = records.settings_of(run).to_dict()
  free = (*records.VARYING, "learning_rate", "measure")
  kept = {name: v for name, v in settings.items() if name not in free}
  # By the names of their flags: which of several differs has to be told.
  training = kept.pop("training")
  return {**kept, **training, **versions(run)}


def _freeze(fields):
  return json.dumps(fields, sort_keys=True)


def _check_learning_rates(runs):
  """Refuses an arm whose runs were not trained alike, such as trials."""
  rates = {}
  for run in runs:
    settings = records.settings_of(run)
    first = rates.setdefault(settings.arm, settings.learning_rate)
    if settings.learning_rate != first:
      raise ValueError(
        f"{settings.arm}, {settings.measure}: was recorded with learning_rate="
        f"{first} and {settings.learning_rate}: such runs do not compare"
      )
