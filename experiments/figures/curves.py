"""Learning curves over fresh examples and over steps: runs, and their median.

The median goes as far as all runs of an arm do: that of the rest, which have
not reached the target yet, would be another one.
"""

from __future__ import annotations

import statistics

from experiments import curves, summary
from experiments.figures.drawing import COLORS, count_sideways, explain, panels

_PANELS = {"consumed": "fresh examples consumed", "step": "steps"}


def draw(comparison):
  """Returns the figure; None if no run is long enough for a line."""
  runs_of = summary.by_arm(comparison.runs)
  runs = [run for runs in runs_of.values() for run in runs]
  if not any(_line(run, "step")[1] for run in runs):
    return None
  figure, axes = panels(2, height=4.4, sharey=True)
  for one, (column, unit) in zip(axes, _PANELS.items()):
    for index, arm_runs in enumerate(runs_of.values()):
      lines = [_line(run, column) for run in arm_runs]
      for line in lines:
        one.plot(*line, **_style(index), linewidth=0.6, alpha=0.5)
      one.plot(*_median(lines), **_style(index), linewidth=1.8)
    one.axhline(
      summary.targets(runs)[-1], color="black", linewidth=0.5, linestyle=":"
    )
    one.set_xlabel(unit)
    count_sideways(one)
  for index, arm in enumerate(runs_of):
    axes[0].plot([], [], **_style(index), label=str(arm))
  axes[0].set_ylabel(
    f"{summary.metric_name(runs)}, mean of {curves.WINDOW} evaluations"
  )
  axes[0].legend(frameon=False, fontsize="small")
  explain(figure, [comparison], how="thick lines: medians")
  return figure


def _line(run, column):
  """The curve as targets see it, from the first mean to the last."""
  line = curves.middles(run["curve"][column])
  return line, curves.means(run["curve"]["metric"])


def _median(lines):
  """Of the points that are the same evaluation, the median of both axes."""
  return [
    [statistics.median(points) for points in zip(*axis)]
    for axis in zip(*lines)
  ]


def _style(index):
  style = "-" if index < len(COLORS) else "--"
  return {"color": COLORS[index % len(COLORS)], "linestyle": style}
