"""What a shuffle buffer behind the echo repairs: fresh examples, distinct ones.

On the left the fresh examples to the hardest target over the size of the
buffer, on the right how much of a batch is distinct. An arm without a buffer
stands at the left end of the line of the one with it.
"""

from __future__ import annotations

from experiments import summary, sweeps
from experiments.figures.drawing import (
  COLORS,
  add_legend,
  count_upwards,
  draw_line,
  explain,
  name_ticks,
  panels,
)
from experiments.seeds import NEVER, Seeds

_NO_ECHO = -0.5  # Where the baseline stands; buffers stand from 0 on.


def draw(sweep):
  """Returns the figure of comparisons that differ in their shuffle buffer.

  Args:
    sweep: A list of them, sorted by it, of `sweeps.BUFFERS`.

  Returns:
    A figure; None if no echo was run with two sizes, none at all being one.
  """
  lines = sweeps.by_buffer(sweep)
  lines = {arm: line for arm, line in lines.items() if len(line) > 1}
  if not lines:
    return None
  runs = [run for one in sweep for run in one.runs]
  target = summary.shown_target(runs)
  sizes = sorted({size for line in lines.values() for size in line})
  figure, (fresh, distinct) = panels(2, height=4.4)
  _draw_baseline(fresh, sweeps.baseline(sweep), target)
  for index, (arm, line) in enumerate(lines.items()):
    # Evenly spaced, since none at all is one of the sizes.
    places = [sizes.index(size) for size in line]
    needed = [Seeds.to_target(runs, target) for runs in line.values()]
    style = {"color": COLORS[index % len(COLORS)], "label": str(arm)}
    draw_line(fresh, places, needed, **style)
    draw_line(distinct, places, [_shares(r) for r in line.values()], **style)
  metric = summary.metric_name(runs)
  fresh.set_ylabel(f"fresh examples\nto {metric} {target:g}")
  count_upwards(fresh)
  distinct.set_ylabel("distinct examples in a batch, share")
  names = [f"{size:,}" if size else "none" for size in sizes]
  for axes in (fresh, distinct):
    axes.set_xlabel("shuffle buffer, fresh examples")
    name_ticks(axes.xaxis, range(len(sizes)), names)
  add_legend(fresh)
  explain(figure, sweep)
  return figure


def _shares(runs):
  return Seeds.of([run["counts"]["distinct_share"] for run in runs])


def _draw_baseline(axes, runs, target):
  """Draws what no echo needs, on the left, and as a line: it has no buffer."""
  if not runs:
    return
  seeds = Seeds.to_target(runs, target)
  draw_line(axes, [_NO_ECHO], [seeds], color="black", label=None)
  if seeds.median < NEVER:
    axes.axhline(seeds.median, color="black", linestyle="--", label="baseline")
