"""What the paper claims, beside what recorded runs say: a rule per claim.

```python
for recorded in group(finished):
  for verdict in judge(recorded):
    print(verdict.claim, verdict.answer, verdict.found)
```

The rules are the same for all records, and blind to what they find: a claim
holds if all that it says about the arms is so by the medians over the seeds,
and in half of the comparisons clearly: beyond the spread of the seeds, the
bootstrap interval of the ratio of two medians leaving out 1. It holds in part
if more than half of it is so, or one half of a claim that has two. An arm with
fewer than three seeds says nothing.

Source of the claims: D. Choi, A. Passos, C. Shallue, G. Dahl, "Faster Neural
Network Training with Data Echoing", arXiv 1907.05550.
"""

from __future__ import annotations

from experiments import comparisons
from experiments.claims import (
  batch_sizes,
  factors,
  placement,
  quality,
  repeats,
  shuffling,
  wall_time,
)
from experiments.claims.evidence import Recorded
from experiments.markdown import table

_CLAIMS = (
  placement.judge,
  repeats.judge,
  batch_sizes.judge,
  shuffling.judge,
  factors.judge,
  quality.judge,
  wall_time.judge,
)


def group(finished):
  """Returns a `Recorded` per workload, preset and versions.

  Args:
    finished: List of records, each run once.
  """
  groups = {}
  for run in finished:
    settings = run["settings"]
    under = sorted(comparisons.versions(run).items())
    key = settings["workload"], settings["preset"], str(under)
    groups.setdefault(key, []).append(run)
  return [
    Recorded(
      runs,
      to_target=comparisons.split(runs, "target"),
      final=comparisons.split(runs, "final"),
    )
    for runs in groups.values()
  ]


def judge(recorded):
  """Returns the `Verdict` on every claim, in the order of the paper."""
  return [rule(recorded) for rule in _CLAIMS]


def overview(groups):
  """Returns the answers as a table in Markdown, a column per `Recorded`."""
  rows = zip(*(judge(recorded) for recorded in groups))
  return table(
    ("claim", *(recorded.name for recorded in groups)),
    [
      (f"{number}. {row[0].claim}", *(verdict.answer for verdict in row))
      for number, row in enumerate(rows, 1)
    ],
  )


def markdown(recorded):
  """Returns the verdicts as a table in Markdown, under whose they are."""
  verdicts = table(
    ("claim", "verdict", "what the records say", "what would test the rest"),
    [
      (f"{number}. {v.claim}", v.answer, v.found or "-", v.missing or "-")
      for number, v in enumerate(judge(recorded), 1)
    ],
  )
  return f"{recorded.title}\n\n{verdicts}\n"
