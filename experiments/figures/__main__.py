"""Draws recorded runs or measurements to PNG files; see the package."""

from __future__ import annotations

import json
import pathlib

from absl import flags

from experiments import command_line, comparisons, figures
from experiments.figures import stall

_RESULTS = flags.DEFINE_list(
  "results",
  [],
  "Paths of files of recorded runs, a comma-separated list, in which * stands "
  "for anything, as in results/*.jsonl. What is recorded "
  "with several batch sizes or shuffle buffers, one file each, is drawn over "
  "them, too.",
)
_STALL = flags.DEFINE_string(
  "stall",
  None,
  "Path of a file that `experiments.benchmark --suite=stall --output` wrote.",
)
_OUTPUT_DIR = flags.DEFINE_string(
  "output_dir", ".", "Path of the directory that the PNG files go to."
)


def main():
  with command_line.refusing_in_one_line():
    drawn = _load_and_draw()
  output_dir = pathlib.Path(_OUTPUT_DIR.value)
  output_dir.mkdir(parents=True, exist_ok=True)
  figures.save(drawn, output_dir)


def _load_and_draw():
  if bool(_RESULTS.value) == bool(_STALL.value):
    raise ValueError("--results: needs a file, or else --stall")
  if _STALL.value:
    with command_line.blaming("stall", OSError):
      measured = pathlib.Path(_STALL.value).read_text()
    return {"stall": stall.draw(json.loads(measured))}
  with command_line.blaming("results", OSError):
    return figures.draw(comparisons.load(_RESULTS.value))


if __name__ == "__main__":
  command_line.run(main)
