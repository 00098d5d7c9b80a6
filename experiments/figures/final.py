"""The metric at the end of a cosine schedule, a row per arm."""

from __future__ import annotations

from experiments import summary
from experiments.figures.drawing import (
  draw_row,
  explain,
  name_rows,
  panels,
)
from experiments.seeds import Seeds


def draw(comparison):
  """Returns the figure; None without runs to the end of a schedule."""
  rows = summary.final(comparison.runs)
  if not rows:
    return None
  figure, axes = panels(height=1.5 + 0.3 * len(rows))
  for position, row in enumerate(reversed(rows)):
    draw_row(axes, position, Seeds.of(row.metrics))
  metric = summary.metric_name(comparison.runs)
  axes.set_xlabel(f"{metric} after {rows[0].steps:,} steps")
  name_rows(axes, [_name(row) for row in rows])
  explain(figure, [comparison])
  return figure


def _name(row):
  diverged = len(Seeds.of(row.metrics).missed)
  name = f"{row.name}, {row.consumed.median:,.0f} fresh"
  return f"{name} ({diverged} diverged)" if diverged else name
