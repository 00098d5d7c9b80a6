"""Learning curves over fresh examples and over steps, a line per run."""

from __future__ import annotations

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
      for run in arm_runs:
        one.plot(*_line(run, column), **_style(index), linewidth=0.7)
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
  explain(figure, [comparison], how="a line per run")
  return figure


def _line(run, column):
  """The curve as targets see it, from the first mean on."""
  line = run["curve"][column][curves.WINDOW - 1 :]
  return line, curves.means(run["curve"]["metric"])


def _style(index):
  style = "-" if index < len(COLORS) else "--"
  return {"color": COLORS[index % len(COLORS)], "linestyle": style}
