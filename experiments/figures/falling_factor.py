"""What a factor that falls in the course of training costs, and brings."""

from __future__ import annotations

from experiments import summary
from experiments.arms import Arm
from experiments.figures.drawing import COLORS, explain, panels
from experiments.seeds import Seeds


def draw(comparison):
  """Returns the figure; None if no factor falls."""
  rows = summary.final(comparison.runs)
  falling = {row.arm.kind for row in rows if row.arm.last_factor}
  if not falling:
    return None
  rows = [r for r in rows if r.arm == Arm() or r.arm.kind in falling]
  figure, axes = panels(height=4.2)
  for index, row in enumerate(rows):
    _draw_arm(axes, row, COLORS[index % len(COLORS)])
  axes.set(
    xlabel=f"fresh examples of {rows[0].steps:,} steps, median",
    ylabel=f"{summary.metric_name(comparison.runs)} after them",
  )
  axes.set_xlim(left=0)
  axes.xaxis.set_major_formatter("{x:,.0f}")
  axes.legend(frameon=False, fontsize="small")
  explain(figure, [comparison])
  return figure


def _draw_arm(axes, row, color):
  x = row.consumed.median
  # A schedule per epoch costs as much: left of it, or they hide each other.
  x *= 0.97 if row.is_per_epoch else 1
  marker = "v" if row.arm.last_factor else "o"
  interval = Seeds.of(row.metrics).interval
  if interval:
    axes.plot([x, x], interval, color=color, linewidth=1)
  axes.plot([x] * row.runs, row.metrics, marker, color=color, alpha=0.35)
  axes.plot([x], [row.metric.median], marker, color=color, label=row.name)
