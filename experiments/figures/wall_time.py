"""Seconds to the target behind a slow upstream, beside the time model's."""

from __future__ import annotations

from experiments import summary
from experiments.figures.drawing import (
  COLORS,
  add_legend,
  draw_row,
  explain,
  name_rows,
  panels,
)


def draw(comparison):
  """Returns the figure; None without runs behind a slow upstream."""
  rows = summary.timed(comparison.runs)
  if not rows:
    return None
  figure, axes = panels(height=1.7 + 0.35 * len(rows))
  for position, row in enumerate(reversed(rows)):
    draw_row(axes, position, row.seeds)
  axes.plot(
    [row.expected_seconds for row in reversed(rows)],
    range(len(rows)),
    "d",
    color=COLORS[1],
    label="time model, for the fresh examples of these runs",
  )
  axes.set_xlabel("seconds to the target")
  axes.set_xlim(left=0)
  name_rows(axes, [name(row) for row in rows])
  add_legend(axes, loc="lower right")
  explain(figure, [comparison], is_timed=True)
  return figure


def name(row):
  """Returns arm, upstream and misses of a `summary.Timed`."""
  jitter = f", jitter {row.upstream_jitter:g}" if row.upstream_jitter else ""
  missed = row.runs - row.reached
  return f"{row.arm}, {row.upstream_ms:g} ms{jitter}, R = {row.ratio:.1f}" + (
    f" ({missed} missed it)" if missed else ""
  )
