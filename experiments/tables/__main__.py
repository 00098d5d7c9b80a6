"""Prints recorded runs as tables in Markdown; see the package."""

from __future__ import annotations

from absl import flags

from experiments import command_line, comparisons
from experiments.tables import tables

_RESULTS = flags.DEFINE_list(
  "results",
  None,
  "Paths of files of recorded runs, a comma-separated list.",
  required=True,
)
_TARGETS = flags.DEFINE_list(
  "targets",
  [],
  "Which of the targets to show, values of the validation metric, a "
  "comma-separated list. Default: the hardest that the baseline reaches under "
  "every seed.",
)


def main():
  with command_line.refusing_in_one_line():
    with command_line.blaming("results", OSError):
      finished = comparisons.load(_RESULTS.value)
    targets = command_line.numbers("targets", _TARGETS.value)
    shown = tables(finished, targets)
  print("\n\n".join(shown))


if __name__ == "__main__":
  command_line.run(main)
