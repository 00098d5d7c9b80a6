"""What all figures share: their axes, seeds with median and interval, caption.

```python
figure, axes = panels(height=4.2)
draw_row(axes, 0, Seeds.to_target(runs, 0.99))
add_legend(axes)
explain(figure, [comparison])
```
"""

from __future__ import annotations

import collections
import dataclasses
import math

import matplotlib
from matplotlib import figure as mpl_figure
from matplotlib import ticker

from experiments import arms, comparisons, intervals, records

_WIDTH = 7.0  # inches
COLORS = matplotlib.colormaps["tab10"].colors

# Marks the triangles of runs that did not arrive.
MISSED = "not reached by then"

_MEDIANS = f"medians with {intervals.CONFIDENCE:.0%} bootstrap intervals"


def panels(count=1, *, height, **options):
  """Returns a figure and its axes, a list of them if there are several."""
  # Not pyplot: it keeps figures, and picks a backend by the machine it is on.
  figure = mpl_figure.Figure(figsize=(_WIDTH, height), layout="constrained")
  axes = figure.subplots(1, count, squeeze=False, **options)[0]
  for one in axes:
    one.spines[["top", "right"]].set_visible(False)
  return figure, axes[0] if count == 1 else list(axes)


def color_of(kind):
  """Returns the color of a kind of arm, the same in every figure."""
  return COLORS[arms.kinds().index(kind) % len(COLORS)]


def title_of(kind):
  """Returns a kind of arm as it is written in figures."""
  return kind.replace("_", " ")


def name_rows(axes, names):
  """Names the rows of a figure, from the top down."""
  count = len(names)
  axes.set_yticks(range(count), list(reversed(names)))
  axes.set_ylim(-0.7, count - 0.3)


def draw_row(axes, position, seeds, *, color=COLORS[0]):
  """Draws seeds along a row: dots, a line for the interval, a median."""
  if seeds.interval:
    axes.plot(seeds.interval, [position] * 2, color="black", linewidth=0.8)
  _draw_seeds(axes, seeds, ">", color, along=position, is_row=True)
  if math.isfinite(seeds.median):
    axes.plot(seeds.median, position, "|", color="black", markersize=14)


def draw_line(axes, positions, columns, *, color, label, style="-"):
  """Draws medians with intervals as a line, and the seeds around it.

  Args:
    axes: Where.
    positions: On the horizontal axis, one per element of `columns`.
    columns: List of `Seeds`; the line leaves out medians that did not come.
    color: Of all of it.
    label: What the legend says.
    style: Of the line.
  """
  for position, seeds in zip(positions, columns):
    _draw_seeds(axes, seeds, "^", color, along=position)
    if seeds.interval:
      axes.plot([position] * 2, seeds.interval, color=color, linewidth=1)
  known = [
    (position, seeds.median)
    for position, seeds in zip(positions, columns)
    if math.isfinite(seeds.median)
  ]
  axes.plot(
    [position for position, _ in known],
    [median for _, median in known],
    style,
    marker="o",
    color=color,
    markersize=5,
    label=label,
  )


def name_ticks(axis, ticks, names=None):
  """Puts ticks at these values and nowhere else."""
  axis.set_ticks(ticks, names or [f"{tick:g}" for tick in ticks])
  axis.set_minor_locator(ticker.NullLocator())


def count_upwards(axes):
  """Makes the vertical axis one of counts over orders of magnitude.

  Args:
    axes: With all that is drawn in them.
  """
  axes.set_yscale("log")
  _name_counts(axes.yaxis, (1, 2, 5))


def count_sideways(axes):
  """Likewise the horizontal axis, where there is room for fewer names."""
  axes.set_xscale("log")
  _name_counts(axes.xaxis, (1, 3))


def _name_counts(axis, leading_digits):
  low, high = axis.get_view_interval()
  if high < 8 * low:  # too few of them would be in between
    axis.set_major_locator(ticker.MaxNLocator(5, steps=(1, 2, 5, 10)))
  else:
    axis.set_major_locator(ticker.LogLocator(subs=leading_digits))
  axis.set_minor_locator(ticker.NullLocator())
  axis.set_major_formatter("{x:,.0f}")


def add_legend(axes, **options):
  """Adds the legend, with a triangle if runs are drawn that missed."""
  missing = [line for line in axes.lines if line.get_gid() == MISSED]
  if missing:
    marker = missing[0].get_marker()
    axes.plot([], [], marker, color="gray", mfc="none", label=MISSED)
  if axes.get_legend_handles_labels()[0]:
    axes.legend(frameon=False, fontsize="small", **options)


def explain(figure, shown, *, how=_MEDIANS, is_timed=False):
  """Writes under a figure which runs it shows, and how.

  Args:
    figure: The figure.
    shown: The comparisons in it; what they differ in is named.
    how: What is drawn of them besides every run.
    is_timed: Whether of these it shows the runs behind a slow upstream, in
      place of the others.
  """
  runs = [
    run
    for comparison in shown
    for run in comparison.runs
    if records.settings_of(run).is_fast != is_timed
  ]
  lines = [
    _who(shown),
    f"recorded {_period(runs)}, {_seeds(runs)}, every one shown; {how}",
    _by_what(runs),
  ]
  figure.supxlabel("\n".join(filter(None, lines)), fontsize=6.5, color="gray")


def _who(shown):
  """The conditions that matter most, and any that differ."""

  def values(name):
    return "/".join(dict.fromkeys(str(c.conditions.get(name)) for c in shown))

  said = ("workload", "preset", "batch_size", "echo_buffer", "tensorflow")
  differing = comparisons.differing([c.conditions for c in shown])
  return ", ".join(
    [
      f"{values('workload')} {values('preset')}",
      f"batch {values('batch_size')}",
      f"M = {values('echo_buffer')}",
      f"TensorFlow {values('tensorflow')}",
      *(f"{name} {values(name)}" for name in differing if name not in said),
    ]
  )


def _by_what(runs):
  """The code and the processors that the runs are of, if they are several."""
  code = dict.fromkeys(run.get("revision") or "unknown" for run in runs)
  made = {"by code": code, "on": comparisons.processors(runs)}
  several = {how: names for how, names in made.items() if len(names) > 1}
  return ", ".join(f"{how} {'/'.join(n)}" for how, n in several.items())


def _period(runs):
  days = sorted({run["date"][:10] for run in runs})
  return " to ".join(dict.fromkeys([days[0], days[-1]]))


def _seeds(runs):
  """How many there are of what is drawn, from the fewest to the most."""
  seeds_of = collections.defaultdict(set)
  for run in runs:
    settings = records.settings_of(run)
    one_of = dataclasses.replace(settings, seed=0)
    seeds_of[one_of].add(settings.seed)
  counts = sorted(map(len, seeds_of.values()))
  return f"{'-'.join(map(str, dict.fromkeys([counts[0], counts[-1]])))} seeds"


def _draw_seeds(axes, seeds, marker, color, *, along, is_row=False):
  """Dots where runs arrived, hollow triangles where others ended."""
  for values, style in (
    (seeds.reached, {"marker": "o", "alpha": 0.4}),
    (seeds.missed, {"marker": marker, "mfc": "none", "gid": MISSED}),
  ):
    if values:
      places = [along] * len(values)
      points = (values, places) if is_row else (places, values)
      axes.plot(*points, color=color, linestyle="", markersize=5, **style)
