"""Figures of recorded runs and measurements, as PNG files.

  python -m experiments.figures --results=results.jsonl --output_dir=figures
  python -m experiments.figures --stall=stall.json --output_dir=figures
"""

from __future__ import annotations

import json
import math
import pathlib
import statistics

import matplotlib
from absl import flags
from matplotlib import figure as mpl_figure
from matplotlib import ticker

from experiments import command_line, records, stall_figure, summary
from experiments.arms import Arm
from experiments.curves import WINDOW

_WIDTH = 7.0  # inches
_COLORS = matplotlib.colormaps["tab10"].colors
_DPI = 110


def draw(finished):
  """Returns the figures that the runs are enough for.

  Args:
    finished: List of records.

  Returns:
    A dict from the name of a figure to a `matplotlib.figure.Figure`.
  """
  figures = {}
  if _any_reached(finished):
    figures["fresh_to_target"] = fresh_to_target(finished)
  if any(_smooth(run)[1] for run in finished if _is_plain(run)):
    figures["curves"] = curves(finished)
  if _have_a_line(finished):
    figures["factors"] = factors(finished)
  if summary.final(finished):
    figures["final"] = final(finished)
  if _timed(finished):
    figures["wall_time"] = wall_time(finished)
  return figures


def save(figures, output_dir):
  """Writes each figure to `<output_dir>/<name>.png`."""
  for name, figure in figures.items():
    # No metadata: the same runs give the same bytes.
    figure.savefig(
      pathlib.Path(output_dir, f"{name}.png"),
      dpi=_DPI,
      metadata={"Software": None},
    )


def fresh_to_target(finished):
  """Fresh examples to the hardest target, a dot per seed that reached it."""
  target = summary.targets(finished)[-1]
  rows = summary.to_target(finished, target)
  figure, axes = _axes(1.4 + 0.3 * len(rows))
  names = []
  for position, row in enumerate(reversed(rows)):
    reached = [
      run["to_target"][f"{target:g}"] for run in _runs(finished, row.arm)
    ]
    values = [columns["consumed"] for columns in reached if columns]
    missed = f" ({row.runs - row.reached} missed it)"
    names.append(f"{row.arm}{missed if row.reached < row.runs else ''}")
    _draw_dots(axes, position, values, row.consumed.median)
  _draw_ideal_marks(axes, rows)
  axes.set(
    xlabel=f"fresh examples to {summary.metric_name(finished)} {target:g}",
    yticks=range(len(rows)),
    yticklabels=names,
  )
  axes.set_xlim(left=0)
  axes.set_ylim(-0.7, len(rows) - 0.3)
  axes.xaxis.set_major_formatter("{x:,.0f}")
  return figure


def factors(finished):
  """Fresh examples to the hardest target over the factor, by placement."""
  target = summary.targets(finished)[-1]
  rows = summary.to_target(finished, target)
  figure, axes = _axes(4.2)
  ticks = _factors(finished)
  _draw_ideal(axes, rows, ticks)
  baseline = [row for row in rows if row.arm == Arm()]
  kinds = list(dict.fromkeys(row.arm.kind for row in rows if row.arm != Arm()))
  for index, kind in enumerate(kinds):
    shift = 1 + 0.02 * (index - len(kinds) / 2)  # or the bars hide each other
    line = [row for row in rows if row.arm.kind == kind]
    _draw_line(axes, baseline + line, _COLORS[index % len(_COLORS)], shift)
  axes.set(
    xlabel="echoing factor",
    ylabel=f"fresh examples to {summary.metric_name(finished)} {target:g}",
    xscale="log",
    yscale="log",
  )
  axes.set_xticks(ticks, [f"{factor:g}" for factor in ticks])
  axes.xaxis.set_minor_locator(ticker.NullLocator())
  axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
  axes.yaxis.set_minor_locator(ticker.NullLocator())
  axes.yaxis.set_major_formatter("{x:,.0f}")
  axes.legend(frameon=False, fontsize="small")
  return figure


def curves(finished):
  """The metric over fresh examples, a line per run."""
  figure, axes = _axes(4.2)
  target = summary.targets(finished)[-1]
  for index, row in enumerate(summary.to_target(finished, target)):
    color = _COLORS[index % len(_COLORS)]
    style = "-" if index < len(_COLORS) else "--"
    for run in _runs(finished, row.arm):
      axes.plot(*_smooth(run), style, color=color, linewidth=0.8)
    axes.plot([], [], style, color=color, label=str(row.arm))
  axes.axhline(target, color="black", linewidth=0.5, linestyle=":")
  axes.set(
    xlabel="fresh examples consumed",
    ylabel=f"{summary.metric_name(finished)}, mean of {WINDOW} evaluations",
    xscale="log",
  )
  axes.legend(frameon=False, fontsize="small")
  return figure


def final(finished):
  """The metric at the end of a cosine schedule, a dot per seed."""
  rows = summary.final(finished)
  figure, axes = _axes(1.2 + 0.3 * len(rows))
  for position, row in enumerate(reversed(rows)):
    _draw_dots(axes, position, row.metrics, row.metric.median)
  axes.set(
    xlabel=f"{summary.metric_name(finished)} after {rows[0].steps} steps",
    yticks=range(len(rows)),
    yticklabels=[
      f"{row.name}, {row.consumed.median:,.0f} fresh" for row in reversed(rows)
    ],
  )
  return figure


def wall_time(finished):
  """Seconds to the target behind a slow upstream, beside the time model's."""
  rows = _timed(finished)
  figure, axes = _axes(1.4 + 0.45 * len(rows))
  positions = [len(rows) - 1 - index for index in range(len(rows))]
  axes.barh(
    [p + 0.2 for p in positions],
    [row.seconds.median for row in rows],
    height=0.4,
    color=_COLORS[0],
    label="measured",
  )
  axes.barh(
    [p - 0.2 for p in positions],
    [row.expected_seconds for row in rows],
    height=0.4,
    color=_COLORS[7],
    label="time model",
  )
  axes.set(
    xlabel="seconds to the target",
    yticks=positions,
    yticklabels=[
      f"{row.arm}, R = {row.ratio:.1f}"
      + (f", jitter {row.upstream_jitter:g}" if row.upstream_jitter else "")
      for row in rows
    ],
  )
  axes.legend(frameon=False, fontsize="small")
  return figure


def _timed(finished):
  """Those of which at least half of the seeds reached the target."""
  rows = summary.timed(finished)
  return [row for row in rows if math.isfinite(row.seconds.median)]


def _axes(height):
  # Not pyplot: it keeps figures, and picks a backend by the machine it is on.
  figure = mpl_figure.Figure(figsize=(_WIDTH, height), layout="constrained")
  axes = figure.add_subplot()
  axes.spines[["top", "right"]].set_visible(False)
  return figure, axes


def _draw_dots(axes, position, values, median):
  axes.plot(values, [position] * len(values), "o", color=_COLORS[0], alpha=0.5)
  if math.isfinite(median):
    axes.plot(median, position, "|", color="black", markersize=14)


def _draw_ideal_marks(axes, rows):
  """Marks what each arm would need if its copies were fresh examples."""
  fresh = _baseline(rows)
  if fresh is None:
    return
  positions = range(len(rows))
  ideal = [fresh / row.arm.factor for row in reversed(rows)]
  axes.plot(ideal, positions, "x", color="gray", label="if copies were fresh")
  axes.legend(frameon=False, fontsize="small", loc="lower right")


def _draw_ideal(axes, rows, ticks):
  fresh = _baseline(rows)
  if fresh is not None:
    ideal = [fresh / factor for factor in ticks]
    axes.plot(ticks, ideal, ":", color="gray", label="if copies were fresh")


def _draw_line(axes, rows, color, shift):
  """One line over the factors, with bars from the best seed to the worst."""
  rows = [row for row in rows if math.isfinite(row.consumed.median)]
  spreads = [row.consumed for row in rows]
  below = [spread.median - spread.low for spread in spreads]
  # Where a seed missed the target, the bar has no upper end to draw.
  above = [
    spread.high - spread.median if math.isfinite(spread.high) else 0
    for spread in spreads
  ]
  axes.errorbar(
    [row.arm.factor * shift for row in rows],
    [spread.median for spread in spreads],
    yerr=[below, above],
    color=color,
    marker="o",
    markersize=4,
    capsize=3,
    label=rows[-1].arm.kind.replace("_", " ") if rows else None,
  )


def _smooth(run):
  """The curve as targets see it: fresh examples, mean of the last values."""
  values = run["curve"]["metric"]
  means = [
    statistics.fmean(values[last - WINDOW : last])
    for last in range(WINDOW, len(values) + 1)
  ]
  return run["curve"]["consumed"][WINDOW - 1 :], means


def _baseline(rows):
  """Returns what the baseline needs, or None if that is unknown."""
  for row in rows:
    if row.arm == Arm() and math.isfinite(row.consumed.median):
      return row.consumed.median
  return None


def _any_reached(finished):
  """Whether any run reached the hardest target."""
  targets = summary.targets(finished)
  rows = summary.to_target(finished, targets[-1]) if targets else []
  return any(row.reached for row in rows)


def _have_a_line(finished):
  """Whether there is one over the factors: two, besides the baseline's."""
  if len(_factors(finished)) < 3:
    return False
  rows = summary.to_target(finished, summary.targets(finished)[-1])
  return any(math.isfinite(row.consumed.median) for row in rows)


def _factors(finished):
  runs = [run for run in finished if _is_plain(run)]
  return sorted({_arm(run).factor for run in runs})


def _runs(finished, arm):
  return [r for r in finished if _is_plain(r) and _arm(r) == arm]


def _is_plain(run):
  settings = run["settings"]
  return settings["measure"] == "target" and not settings["upstream_ms"]


def _arm(run):
  return records.settings_of(run).arm


def main():
  with command_line.refusing_in_one_line():
    figures = _load_and_draw()
  output_dir = pathlib.Path(_OUTPUT_DIR.value)
  output_dir.mkdir(parents=True, exist_ok=True)
  save(figures, output_dir)


def _load_and_draw():
  if _RESULTS.value:
    return draw(records.load(_RESULTS.value))
  record = json.loads(pathlib.Path(_STALL.value).read_text())
  return {"stall": stall_figure.draw(record)}


if __name__ == "__main__":
  _RESULTS = flags.DEFINE_string(
    "results", None, "Path of a file of recorded runs."
  )
  _STALL = flags.DEFINE_string(
    "stall",
    None,
    "Path of a file that `experiments.benchmark --suite=stall --output` wrote.",
  )
  flags.mark_flags_as_mutual_exclusive(["results", "stall"], required=True)
  _OUTPUT_DIR = flags.DEFINE_string(
    "output_dir", ".", "Path of the directory that the PNG files go to."
  )
  command_line.run(main)
