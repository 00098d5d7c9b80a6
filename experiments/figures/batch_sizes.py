"""Fresh examples over the batch size, to what its own baseline reaches.

A larger batch may reach further than a smaller one, so that one target for all
would favour the larger: for each batch size it is the hardest of the targets
set beforehand that all seeds of the baseline of that size reach.
"""

from __future__ import annotations

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
from experiments.sweeps import BATCH_SIZES


def draw(sweep):
  """Returns the figure of comparisons that differ in their batch size.

  Args:
    sweep: A list of them, sorted by it, of `sweeps.BATCH_SIZES`.

  Returns:
    A figure with a panel per factor; None if fewer than two have a target.
  """
  points = [(one, summary.own_target(one.runs)) for one in sweep]
  points = [(one, target) for one, target in points if target is not None]
  if len(points) < 2:
    return None
  runs_of = [summary.by_arm(one.runs) for one, _ in points]
  factors = sorted({a.factor for arms in runs_of for a in arms if a.is_echo})
  figure, axes = panels(max(len(factors), 1), height=4.4, sharey=True)
  for one, factor in zip(figure.axes, factors or [1]):
    _draw_panel(one, points, runs_of, factor)
  figure.axes[0].set_ylabel("fresh examples to its own target")
  count_upwards(figure.axes[0])
  add_legend(figure.axes[0])
  explain(figure, [one for one, _ in points])
  return figure


def _draw_panel(axes, points, runs_of, factor):
  sizes = [one.conditions[BATCH_SIZES.over] for one, _ in points]
  targets = [target for _, target in points]
  arms = [a for some in runs_of for a in some if a.factor == factor]
  for arm in dict.fromkeys([Arm(), *arms]):
    line = [
      (size, Seeds.to_target(runs[arm], target))
      for size, target, runs in zip(sizes, targets, runs_of)
      if arm in runs
    ]
    draw_line(
      axes,
      [size for size, _ in line],
      [seeds for _, seeds in line],
      color=color_of(arm.kind),
      label=title_of(arm.kind),
      style="--" if arm == Arm() else "-",
    )
  axes.set_title(f"e = {factor:g}", fontsize="medium")
  axes.set_xscale("log")
  axes.set_xlabel("batch size, and its target")
  names = [f"{size}\n{target:g}" for size, target in zip(sizes, targets)]
  name_ticks(axes.xaxis, sizes, names)
