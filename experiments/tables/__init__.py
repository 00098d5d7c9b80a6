"""Recorded runs as tables in Markdown, a row per arm.

python -m experiments.tables --results=a.jsonl,b.jsonl --targets=0.83,0.84

Medians over the seeds, with the smallest and the largest in brackets.
"""

from __future__ import annotations

from experiments import comparisons, markdown, records, summary
from experiments.formatting import spread, times


def tables(finished, targets=()):
  """Returns every comparison as a table, under a line if there are several.

  Args:
    finished: List of records, each run once.
    targets: Those to show, of the runs that were to reach one; by default the
      hardest that the baseline reaches under every seed.

  Raises:
    ValueError: If a target was not recorded.
  """
  compared = [
    *(
      (one, _to_target(one.runs, targets or _own(one.runs)))
      for one in comparisons.split(finished, "target")
      if summary.by_arm(one.runs)
    ),
    *(
      (one, _final(one.runs)) for one in comparisons.split(finished, "final")
    ),
  ]
  return [
    f"{one.name}:\n\n{table}" if one.name else table for one, table in compared
  ]


def _own(runs):
  target = summary.own_target(runs)
  return summary.targets(runs)[:1] if target is None else [target]


def _to_target(runs, targets):
  for target in targets:
    if target not in summary.targets(runs):
      raise ValueError(
        f"--targets: must be some of {summary.targets(runs)}, got {target:g}"
      )
  header = ["arm", "learning rate"]
  for target in targets:
    header += [f"fresh examples to {target:g}", "gain"]
  header.append(f"steps to {targets[-1]:g}")
  by_target = [summary.to_target(runs, target) for target in targets]
  rates = _rates(runs)
  return markdown.table(
    header,
    [
      [
        str(cells[0].arm),
        rates[cells[0].arm],
        *(text for cell in cells for text in _needed(cell)),
        spread(cells[-1].steps),
      ]
      for cells in zip(*by_target)
    ],
  )


def _needed(row):
  return spread(row.consumed), times(row.gain)


def _final(runs):
  rows = summary.final(runs)
  rates = _rates(runs)
  measured = f"{summary.metric_name(runs)} after {rows[0].steps:,} steps"
  return markdown.table(
    ["arm", "learning rate", measured, "fresh examples"],
    [
      [
        row.name,
        rates[row.arm],
        spread(row.metric, digits=3, never="diverged"),
        spread(row.consumed),
      ]
      for row in rows
    ],
  )


def _rates(runs):
  """From an arm to its learning rate."""
  settings = map(records.settings_of, runs)
  return {run.arm: f"{run.learning_rate:g}" for run in settings}
