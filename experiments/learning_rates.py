"""The learning rate of each arm, from a file that `experiments.tune` writes.

A comparison in which only one side was tuned is unfair to the other: the file
has an entry for every arm, found with the same grid, seeds and criterion.
"""

from __future__ import annotations

import json
import math
import pathlib

from experiments import files

DEFAULT_PATH = pathlib.Path(__file__).with_name("learning_rates.json")

_COMMON = ("workload", "preset", "batch_size", "measure")


def load(path):
  """Returns the entries of a file: one per workload, measure and arm.

  Raises:
    ValueError: If there is no such file, or it is none of learning rates.
  """
  try:
    entries = json.loads(pathlib.Path(path).read_text())["entries"]
    for entry in entries:
      float(entry["learning_rate"]), float(entry["factor"]), entry["kind"]
    return entries
  except (OSError, ValueError, TypeError, KeyError) as error:
    raise ValueError(
      f"--learning_rates: {path} has none: {error!r}"
    ) from error


def find(entries, arm, **settings):
  """Returns the learning rate that was tuned for an arm.

  A factor that was not tuned takes the rate of the nearest one of its kind, and
  an augmentation for which nothing was tuned those without one.

  Args:
    entries: What `load` returned.
    arm: An `Arm`.
    **settings: `workload`, `preset`, `batch_size` and `measure`; `optimizer`,
      its name, and `augmentation`, what is done behind the workload's own, if
      there are any.

  Returns:
    A float.

  Raises:
    ValueError: If nothing was tuned for this kind of arm under these settings.
  """
  return _entry(entries, arm, **settings)["learning_rate"]


def of_run(entries, settings):
  """Returns the entry that a run has its learning rate from, or None.

  Args:
    entries: What `load` returned.
    settings: `RunSettings`.
  """
  try:
    entry = _entry(
      entries,
      settings.arm,
      optimizer=settings.training.optimizer,
      augmentation=settings.augmentation,
      **{name: getattr(settings, name) for name in _COMMON},
    )
  except ValueError:
    return None
  # Since the run was made, it may have been tuned once more.
  return entry if entry["learning_rate"] == settings.learning_rate else None


def update(path, entries):
  """Puts entries into a file, in place of those for the same arm.

  Args:
    path: Of the file; it is made if there is none.
    entries: List of dicts as `load` returns them.
  """
  path = pathlib.Path(path)
  kept = {_key(e): e for e in (load(path) if path.exists() else [])}
  kept.update({_key(e): e for e in entries})
  text = json.dumps({"entries": [kept[k] for k in sorted(kept)]}, indent=1)
  files.write_whole(path, text + "\n")


def _entry(entries, arm, *, optimizer=None, augmentation=None, **common):
  """The entry that an arm has its rate from."""
  assert set(common) == set(_COMMON)
  for wanted in (
    {**common, "optimizer": optimizer, "kind": kind, "augmentation": extra}
    for extra in (augmentation, None)
    for kind in (arm.kind, arm.tuned_as)
  ):
    tuned = _matching(entries, wanted)
    if tuned:
      break
  else:
    raise ValueError(
      "no learning rate was tuned for "
      + ", ".join(f"{name}={value}" for name, value in wanted.items())
      + ": run `python -m experiments.tune`"
    )
  return min(
    tuned, key=lambda e: abs(math.log(e["factor"]) - math.log(arm.factor))
  )


def _matching(entries, wanted):
  usual = {"optimizer": None, "augmentation": None}
  return [e for e in entries if wanted.items() <= {**usual, **e}.items()]


def _key(entry):
  # Entries for the workload's own optimizer, and nothing behind its own
  # augmentation, need not say so.
  changed = (entry.get(name) or "" for name in ("optimizer", "augmentation"))
  names = (*_COMMON, "kind", "factor")
  return (*(entry[name] for name in names), *changed)
