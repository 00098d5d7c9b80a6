"""Figures of recorded runs: a module per figure, and what they share.

```python
figures.save(figures.draw(finished), output_dir)
```

  python -m experiments.figures --results=a.jsonl,b.jsonl --output_dir=figures
  python -m experiments.figures --stall=stall.json --output_dir=figures

Every figure shows all seeds, medians with their bootstrap intervals, and, as
hollow triangles, how far those runs got that missed what is drawn. Below it
stands under which conditions the runs were made. Runs that differ in more than
their arm never share a figure, except in one over what they differ in.
"""

from __future__ import annotations

import pathlib
import re

from experiments import comparisons
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

# Each draws a list of comparisons that differ in what its module names.
_OF_SWEEPS = {"batch_sizes": batch_sizes, "buffers": buffers}


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
  for name, module in _OF_SWEEPS.items():
    for condition, sweep in _sweeps(finished, module).items():
      drawn[_file_name(name, condition)] = module.draw(sweep)
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


def _sweeps(finished, module):
  """What a module draws, by what else the lists of comparisons differ in."""
  found = comparisons.split(finished, "target")
  within = (module.OVER, *module.FOLLOWING)
  return {
    sweep[0].name_without(within if len(sweep) > 1 else ()): sweep
    for sweep in comparisons.sweeps(
      found, module.OVER, following=module.FOLLOWING
    )
  }


def _file_name(figure, condition):
  # What a file system may not like, such as the name of a processor.
  return "_".join([figure, *re.findall(r"[\w.=,-]+", condition)])
