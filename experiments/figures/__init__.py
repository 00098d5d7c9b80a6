"""Figures of recorded runs: a module per figure, and what they share.

```python
figures.save(figures.draw(finished), output_dir)
```

  python -m experiments.figures --results=a.jsonl,b.jsonl --output_dir=figures
  python -m experiments.figures --stall=stall.json --output_dir=figures

Every figure shows all seeds, medians with their bootstrap intervals, which
whole curves have none of, and, as hollow triangles, how far those runs got that
missed what is drawn. Below it stands under which conditions the runs were made.
Runs that differ in more than their arm never share a figure, except in one over
what they differ in.
"""

from __future__ import annotations

import pathlib
import re

from experiments import comparisons, sweeps
from experiments.figures import (
  batch_sizes,
  best_values,
  buffers,
  curves,
  factors,
  falling_factor,
  final,
  fresh_to_target,
  targets,
  wall_time,
  wall_time_over_ratio,
)

DPI = 110

# Each draws one comparison of its measure, or returns None.
_OF_ONE = {
  "target": {
    "fresh_to_target": fresh_to_target.draw,
    "factors": factors.draw,
    "targets": targets.draw,
    "best_values": best_values.draw,
    "curves": curves.draw,
    "wall_time": wall_time.draw,
    "wall_time_over_ratio": wall_time_over_ratio.draw,
  },
  "final": {
    "final": final.draw,
    "falling_factor": falling_factor.draw,
  },
}

# Each draws a list of comparisons that differ in one condition.
_OF_SWEEPS = {
  "batch_sizes": (sweeps.BATCH_SIZES, batch_sizes.draw),
  "buffers": (sweeps.BUFFERS, buffers.draw),
}


def draw(finished):
  """Returns the figures that the runs are enough for.

  Args:
    finished: List of records, each run once.

  Returns:
    A dict from the name of a figure to a `matplotlib.figure.Figure`. Where runs
    make up several comparisons the name says which, in what they differ.
  """
  drawn = {}
  for measure, figures in _OF_ONE.items():
    for comparison in comparisons.split(finished, measure):
      for name, draw_one in figures.items():
        drawn[_file_name(name, comparison.name)] = draw_one(comparison)
  for name, (sweep, draw_all) in _OF_SWEEPS.items():
    for condition, compared in _swept(finished, sweep).items():
      drawn[_file_name(name, condition)] = draw_all(compared)
  return {name: figure for name, figure in drawn.items() if figure is not None}


def save(figures, output_dir):
  """Writes each figure to `<output_dir>/<name>.png`."""
  for name, figure in figures.items():
    # No metadata: the same runs give the same bytes.
    figure.savefig(
      pathlib.Path(output_dir, f"{name}.png"),
      dpi=DPI,
      metadata={"Software": None},
    )


def _swept(finished, sweep):
  """The comparisons of a sweep, by what else lists of them differ in."""
  return {
    found[0].name_without(sweep.names if len(found) > 1 else ()): found
    for found in sweep.of(comparisons.split(finished, "target"))
  }


def _file_name(figure, condition):
  # What a file system may not like, such as the name of a processor.
  return "_".join([figure, *re.findall(r"[\w.=,-]+", condition)])
