"""The learning rate of each arm, from a file that `experiments.tune` writes.

A comparison in which only one side was tuned is unfair to the other: the file
has an entry for every arm, found with the same grid, seeds and criterion.
"""

from __future__ import annotations

import json
import math
import pathlib

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


def find(entries, arm, *, optimizer=None, **common):
  """Returns the learning rate that was tuned for an arm.

  A factor that was not tuned takes the rate of the nearest one of its kind.

  Args:
    entries: What `load` returned.
    arm: An `Arm`.
    optimizer: Name of the optimizer; None for the workload's.
    **common: `workload`, `preset`, `batch_size` and `measure`.

  Returns:
    A float.

  Raises:
    ValueError: If nothing was tuned for this kind of arm under these settings.
  """
  assert set(common) == set(_COMMON)
  usual = {"optimizer": None}
  for kind in (arm.kind, arm.tuned_as):
    wanted = {**common, "kind": kind, "optimizer": optimizer}
    tuned = [e for e in entries if wanted.items() <= {**usual, **e}.items()]
    if tuned:
      break
  else:
    raise ValueError(
      "no learning rate was tuned for "
      + ", ".join(f"{name}={value}" for name, value in wanted.items())
      + ": run `python -m experiments.tune`"
    )
  nearest = min(
    tuned, key=lambda e: abs(math.log(e["factor"]) - math.log(arm.factor))
  )
  return nearest["learning_rate"]


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
  path.write_text(text + "\n")


def _key(entry):
  # Entries for the workload's own optimizer need not name it.
  optimizer = entry.get("optimizer") or ""
  names = (*_COMMON, "kind", "factor")
  return (*(entry[name] for name in names), optimizer)
