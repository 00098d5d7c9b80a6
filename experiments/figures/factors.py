"""Fresh examples to the hardest target over the factor, a line per place."""

from __future__ import annotations

import math

from experiments import summary
from experiments.arms import Arm
from experiments.figures.drawing import (
  add_legend,
  color_of,
  count_upwards,
  draw_line,
  explain,
  name_ticks,
  panels,
  title_of,
)
from experiments.seeds import Seeds


def draw(comparison):
  """Returns the figure; None with fewer than two factors besides 1."""
  runs_of = summary.by_arm(comparison.runs)
  factors = sorted({arm.factor for arm in runs_of})
  if len(factors) < 3:
    return None
  target = summary.shown_target(comparison.runs)
  points = {arm: Seeds.to_target(runs, target) for arm, runs in runs_of.items()}
  figure, axes = panels(height=4.4)
  _draw_ideal(axes, points, factors)
  kinds = list(dict.fromkeys(arm.kind for arm in points if arm.is_echo))
  for index, kind in enumerate(kinds):
    shift = 1 + 0.025 * (index - len(kinds) / 2)  # or seeds hide each other
    line = [arm for arm in points if arm == Arm() or arm.kind == kind]
    draw_line(
      axes,
      [arm.factor * shift for arm in line],
      [points[arm] for arm in line],
      color=color_of(kind),
      label=title_of(kind),
    )
  metric = summary.metric_name(comparison.runs)
  axes.set(
    xlabel="echoing factor",
    ylabel=f"fresh examples\nto {metric} {target:g}",
    xscale="log",
  )
  name_ticks(axes.xaxis, factors)
  count_upwards(axes)
  add_legend(axes)
  explain(figure, [comparison])
  return figure


def _draw_ideal(axes, points, factors):
  fresh = points[Arm()].median if Arm() in points else math.inf
  if math.isfinite(fresh):
    ideal = [fresh / factor for factor in factors]
    axes.plot(factors, ideal, ":", color="gray", label="if copies were fresh")
