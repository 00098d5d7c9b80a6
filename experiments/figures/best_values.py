"""The best value so far, at equal fresh examples and at equal steps."""

from __future__ import annotations

from experiments import curves, summary
from experiments.figures.drawing import (
  draw_row,
  explain,
  name_rows,
  panels,
)
from experiments.seeds import Seeds

_PANELS = {"consumed": "fresh examples", "step": "steps"}


def draw(comparison):
  """Returns the figure; None if no two arms have values to compare."""
  runs_of = summary.by_arm(comparison.runs)
  runs = [run for runs in runs_of.values() for run in runs]
  found = {column: at_equal(runs_of, column) for column in _PANELS}
  if max(map(len, found.values()), default=0) < 2:
    return None
  figure, axes = panels(2, height=1.7 + 0.3 * len(runs_of), sharey=True)
  for one, (column, unit) in zip(axes, _PANELS.items()):
    for position, arm in enumerate(reversed(runs_of)):
      if arm in found[column]:
        draw_row(one, position, Seeds.of(found[column][arm]))
    one.set_title(f"by {budget(runs, column):,} {unit}", fontsize="medium")
  name_rows(axes[0], [_name(arm, found["consumed"]) for arm in runs_of])
  axes[0].set_xlabel(f"best {summary.metric_name(runs)} so far", loc="left")
  explain(figure, [comparison])
  return figure


def budget(runs, column):
  """Returns the end of the shortest run: up to there, all can be compared."""
  return min(run["counts"][column] for run in runs)


def at_equal(runs_of, column):
  """Returns the best mean of evaluations of every run, within the budget.

  Args:
    runs_of: Dict from an arm to its runs.
    column: What is to be equal, "consumed" or "step".

  Returns:
    A dict like `runs_of`, without arms of which a run had too few evaluations.
  """
  runs = [run for runs in runs_of.values() for run in runs]
  if not runs:
    return {}
  end = budget(runs, column)
  best = {
    arm: [_best(run, column, end) for run in runs]
    for arm, runs in runs_of.items()
  }
  return {arm: values for arm, values in best.items() if None not in values}


def _best(run, column, end):
  curve = run["curve"]
  values = [v for v, at in zip(curve["metric"], curve[column]) if at <= end]
  return curves.best(values, maximize=run["metric"]["maximize"])


def _name(arm, found):
  # So early that it had fewer evaluations than a target takes.
  return str(arm) if arm in found else f"{arm} (too few values on the left)"
