"""Seconds to the target over R, with those of the time model."""

from __future__ import annotations

import itertools

from experiments import summary
from experiments.figures.drawing import (
  COLORS,
  add_legend,
  draw_line,
  explain,
  panels,
)


def draw(comparison):
  """Returns the figure; None if upstream had fewer than two steady paces."""
  rows = summary.timed(comparison.runs)
  rows = [row for row in rows if not row.upstream_jitter]
  if len({row.upstream_ms for row in rows}) < 2:
    return None
  figure, axes = panels(height=4.4)
  in_order = sorted(rows, key=lambda row: (str(row.arm), row.ratio))
  groups = itertools.groupby(in_order, key=lambda row: row.arm)
  for index, (arm, group) in enumerate(groups):
    _draw_arm(axes, arm, list(group), COLORS[index % len(COLORS)])
  axes.plot([], [], "d:", color="gray", label="time model")
  axes.set(
    xlabel="R, upstream's time per fresh example over downstream's per copy",
    ylabel="seconds to the target",
  )
  axes.set_ylim(bottom=0)
  add_legend(axes)
  explain(figure, [comparison], is_timed=True)
  return figure


def _draw_arm(axes, arm, rows, color):
  ratios = [row.ratio for row in rows]
  seconds = [row.seeds for row in rows]
  draw_line(axes, ratios, seconds, color=color, label=str(arm))
  expected = [row.expected_seconds for row in rows]
  axes.plot(ratios, expected, "d:", color=color, mfc="none", linewidth=0.8)
