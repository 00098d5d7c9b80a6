"""Fresh examples to every target up to the best value, a panel per place.

Whether a gain lasts up to the best that a model can reach shows only in runs
that were not stopped before: give `compare` a last target that none reaches.
"""

from __future__ import annotations

import math

import numpy as np

from experiments import curves, summary
from experiments.arms import Arm
from experiments.figures.drawing import (
  COLORS,
  MISSED,
  add_legend,
  count_upwards,
  explain,
  panels,
  title_of,
)
from experiments.seeds import Seeds

_COUNT = 40  # targets from the easiest to the hardest; none is a hidden choice


def draw(comparison):
  """Returns the figure; None without a baseline and an echo to compare."""
  runs_of = summary.by_arm(comparison.runs)
  kinds = list(dict.fromkeys(arm.kind for arm in runs_of if arm.is_echo))
  swept = swept_targets(comparison.runs)
  if not kinds or Arm() not in runs_of or len(swept) < 2:
    return None
  figure, axes = panels(len(kinds), height=4.0, sharey=True)
  for one, kind in zip([axes] if len(kinds) == 1 else axes, kinds):
    _draw_panel(one, kind, runs_of, swept)
    count_upwards(one)
    add_legend(one, loc="upper left")
  figure.axes[0].set_ylabel("fresh examples to it")
  for one in figure.axes:
    one.set_xlabel(summary.metric_name(comparison.runs))
    one.set_xlim(swept[0], swept[-1])  # hard targets on the right
  explain(figure, [comparison])
  return figure


def swept_targets(runs):
  """Returns targets from the easiest that was set to the best value reached.

  Not beyond the hardest that was set: a run that reached it was stopped there,
  and what it would have come to is unknown.
  """
  set_before = summary.targets(runs)
  if not set_before:
    return []
  choose, worse = _directions(runs[0])
  reached = [best(run) for run in runs if best(run) is not None]
  if not reached:
    return []
  end = worse(choose(reached), set_before[-1])
  if worse(end, set_before[0]) == end:
    return []
  return [float(x) for x in np.linspace(set_before[0], end, _COUNT)]


def best(run):
  """Returns the best mean of evaluations that a run came to, or None."""
  maximize = run["metric"]["maximize"]
  return curves.best(run["curve"]["metric"], maximize=maximize)


def _directions(run):
  return (max, min) if run["metric"]["maximize"] else (min, max)


def _draw_panel(axes, kind, runs_of, swept):
  lines = [arm for arm in runs_of if arm == Arm() or arm.kind == kind]
  for index, arm in enumerate(lines):
    color = "black" if arm == Arm() else COLORS[index - 1]
    needed = [Seeds.to_target(runs_of[arm], target) for target in swept]
    for one in zip(*(seeds.values for seeds in needed)):
      axes.plot(*_known(swept, one), color=color, linewidth=0.4, alpha=0.6)
    median = [seeds.median for seeds in needed]
    label = "baseline" if arm == Arm() else f"e = {arm.factor:g}"
    axes.plot(*_known(swept, median), color=color, linewidth=1.8, label=label)
    _mark_end(axes, swept, median, color)
    _draw_intervals(axes, runs_of[arm], swept, color)
  axes.set_title(title_of(kind), fontsize="medium")


def _draw_intervals(axes, runs, swept, color):
  """Draws those of the medians, at the targets that were set."""
  low, high = sorted((swept[0], swept[-1]))
  for target in summary.targets(runs):
    interval = Seeds.to_target(runs, target).interval
    if interval and low <= target <= high:
      axes.plot([target] * 2, interval, color=color, linewidth=1)


def _known(xs, ys):
  pairs = [(x, y) for x, y in zip(xs, ys) if math.isfinite(y)]
  return [x for x, _ in pairs], [y for _, y in pairs]


def _mark_end(axes, swept, median, color):
  """Marks where half of the seeds arrive for the last time."""
  known = _known(swept, median)
  if 0 < len(known[0]) < len(swept):
    point = known[0][-1:], known[1][-1:]
    axes.plot(*point, "^", color=color, mfc="none", gid=MISSED)
