"""Command line of the long runs: `python -m experiments.endurance --help`."""

import datetime
import json
import pathlib
import tempfile

from absl import flags, logging

from experiments import command_line
from experiments.endurance import kills, models, soak
from experiments.environment import environment

_RUN = flags.DEFINE_enum(
  "run",
  "soak",
  ["kills", "models", "soak"],
  "What to do: `kills`, `models` or `soak`.",
)
_KILLS = flags.DEFINE_integer(
  "kills", 50, "How often to kill a training, a count.", lower_bound=1
)
_SEED = flags.DEFINE_integer(
  "seed", 0, "Seed of the moments of the kills, without unit.", lower_bound=0
)
_ELEMENTS = flags.DEFINE_integer(
  "elements",
  10_000_000,
  "Elements to draw through each transformation, a count.",
  lower_bound=10 * soak.STRIDE,
)
_ITERATORS = flags.DEFINE_integer(
  "iterators",
  1_000,
  "Iterators to make and drop over each transformation, a count.",
  lower_bound=10,
)
_CASES = flags.DEFINE_integer(
  "cases",
  1_500,
  "Random uses of each kind to compare with its model, a count.",
  lower_bound=1,
)
_OUTPUT = flags.DEFINE_string(
  "output", None, "Path of a JSON Lines file to add the figures to."
)


def run_kills():
  with tempfile.TemporaryDirectory() as folder:
    return kills.run(
      folder, kills=_KILLS.value, seed=_SEED.value, on_kill=logging.info
    )


def run_models():
  return models.run(_CASES.value)


def run_soak():
  return {
    name: {
      f"{_ELEMENTS.value} elements": soak.elements(name, _ELEMENTS.value),
      f"{_ITERATORS.value} iterators": soak.iterators(name, _ITERATORS.value),
    }
    for name in soak.TRANSFORMATIONS
  }


def main():
  runs = {"kills": run_kills, "models": run_models, "soak": run_soak}
  figures = runs[_RUN.value]()
  record = {
    "run": _RUN.value,
    "date": datetime.datetime.now(datetime.timezone.utc).isoformat(),
    **environment(),
    "figures": figures,
  }
  print(json.dumps(figures, indent=2))
  if _OUTPUT.value:
    with pathlib.Path(_OUTPUT.value).open("a", encoding="utf-8") as file:
      file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
  command_line.run(main)
