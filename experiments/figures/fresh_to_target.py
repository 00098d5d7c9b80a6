"""Fresh examples to the hardest target, a row per arm."""

from __future__ import annotations

import math

from experiments import summary
from experiments.arms import Arm
from experiments.figures.drawing import (
  add_legend,
  draw_row,
  explain,
  name_rows,
  panels,
)
from experiments.seeds import Seeds


def draw(comparison):
  """Returns the figure; None without runs to a target."""
  runs_of = summary.by_arm(comparison.runs)
  if not runs_of:
    return None
  target = summary.shown_target(comparison.runs)
  rows = {arm: Seeds.to_target(runs, target) for arm, runs in runs_of.items()}
  figure, axes = panels(height=1.7 + 0.3 * len(rows))
  for position, seeds in enumerate(reversed(rows.values())):
    draw_row(axes, position, seeds)
  _draw_ideal(axes, rows)
  metric = summary.metric_name(comparison.runs)
  axes.set_xlabel(f"fresh examples to {metric} {target:g}")
  name_rows(axes, [_name(arm, seeds) for arm, seeds in rows.items()])
  axes.set_xlim(left=0)
  axes.xaxis.set_major_formatter("{x:,.0f}")
  add_legend(axes, loc="lower right")
  explain(figure, [comparison])
  return figure


def _name(arm, seeds):
  missed = len(seeds.missed)
  return f"{arm} ({missed} missed it)" if missed else str(arm)


def _draw_ideal(axes, rows):
  """Marks what each arm would need if its copies were fresh examples."""
  fresh = rows[Arm()].median if Arm() in rows else math.inf
  if math.isfinite(fresh):
    ideal = [fresh / arm.factor for arm in reversed(rows)]
    positions = range(len(rows))
    axes.plot(ideal, positions, "x", color="gray", label="if copies were fresh")
