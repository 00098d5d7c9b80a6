"""The figure of the benchmark suite `stall`: what an echo waits and repeats.

python -m experiments.figures --stall=stall.json --output_dir=figures
"""

from __future__ import annotations

import re
import statistics

from matplotlib import figure as mpl_figure
from matplotlib import ticker

_ON_STALL, _BURSTY = "tab:blue", "tab:orange"


def draw(record):
  """Returns the figure: waiting on the left, copies on the right, over R.

  Args:
    record: What `experiments.benchmark --suite=stall --output` has written.
  """
  costs = _medians(record)
  figure = mpl_figure.Figure(figsize=(7.0, 3.2), layout="constrained")
  waiting, copies = figure.subplots(1, 2)
  steady = "example level, constant upstream"
  bursty = "example level, bursty upstream"
  _draw_over_ratio(
    waiting,
    costs,
    {
      (steady, "no echo", "waiting"): ("no echo", "-", "gray"),
      (bursty, "fixed", "waiting"): ("e = R, bursty upstream", "--", "gray"),
      (steady, "on stall", "waiting"): ("on stall", "o-", _ON_STALL),
      (bursty, "on stall", "waiting"): (
        "on stall, bursty upstream",
        "o--",
        _BURSTY,
      ),
    },
  )
  _draw_over_ratio(
    copies,
    costs,
    {
      (steady, "on stall", "ideal copies"): ("ideal", ":", "black"),
      (steady, "on stall", "copies"): ("on stall", "o-", _ON_STALL),
      (bursty, "on stall", "copies"): (
        "on stall, bursty upstream",
        "o--",
        _BURSTY,
      ),
    },
  )
  waiting.set_ylabel("share of the time spent waiting")
  copies.set_ylabel("copies per fresh example")
  return figure


def _medians(record):
  """The cost of every contender of every case, by the names of both."""
  return {
    (row["what"], row["bound"][side]): statistics.median(row[side])
    for row in record["rows"]
    for side in ("ours", "other")
  }


def _draw_over_ratio(axes, costs, lines):
  """Draws lines over R, from a dict of (case, contender, quantity) to style."""
  for (what, contender, quantity), (label, style, color) in lines.items():
    points = {
      float(match[1]): cost
      for (case, name), cost in costs.items()
      if case == what
      and (match := re.fullmatch(f"{contender}, R = (.+), {quantity}", name))
    }
    ratios = sorted(points)
    values = [points[ratio] for ratio in ratios]
    axes.plot(ratios, values, style, color=color, label=label, markersize=4)
  axes.set(xlabel="R, upstream's time over the training's", xscale="log")
  axes.set_xticks(ratios, [f"{r:g}" for r in ratios], fontsize="small")
  axes.xaxis.set_minor_locator(ticker.NullLocator())
  axes.spines[["top", "right"]].set_visible(False)
  axes.legend(frameon=False, fontsize="small")
