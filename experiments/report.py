"""What a comparison found, as a text table and as a page of its own.

```python
print(write(finished, output_dir))  # also makes report.html and the figures
```
"""

from __future__ import annotations

import base64
import dataclasses
import io
import math
import pathlib

import jinja2

from experiments import curves, figures, pacing, summary
from experiments.store import runs as stored_runs

_TEMPLATES = pathlib.Path(__file__).with_name("templates")


@dataclasses.dataclass(frozen=True)
class Table:
  """Texts in rows and columns.

  Attributes:
    title: What the table shows, with units.
    header: Names of the columns.
    rows: One tuple of texts per row.
    notes: Sentences on how to read it.
  """

  title: str
  header: tuple[str, ...]
  rows: list[tuple[str, ...]]
  notes: tuple[str, ...] = ()

  def __str__(self):
    widths = [max(map(len, column)) for column in zip(self.header, *self.rows)]
    lines = [
      "  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip()
      for row in [self.header, ["-" * width for width in widths], *self.rows]
    ]
    return "\n".join([self.title, "", *lines, "", *self.notes])


def write(finished, output_dir):
  """Writes figures and `report.html`; returns the tables as text.

  Args:
    finished: List of records, of runs that compare.
    output_dir: Path of a directory that exists.

  Returns:
    The tables of the report, ready to print.
  """
  drawn = figures.draw(finished)
  figures.save(drawn, output_dir)
  shown = tables(finished)
  page = html(shown, drawn, finished)
  pathlib.Path(output_dir, "report.html").write_text(page, encoding="utf-8")
  trained = ", ".join(summary.descriptions(finished))
  return "\n\n".join([trained, *map(str, shown)])


def tables(finished):
  """Returns a `Table` for each thing that was measured."""
  shown = []
  if summary.targets(finished):
    shown += [
      _to_target_table(finished),
      _many_targets_table(finished),
      _repeats_table(finished),
      _paced_table(finished),
    ]
  if summary.final(finished):
    shown.append(_final_table(finished))
  if summary.timed(finished):
    shown.append(_timed_table(finished))
  if stored_runs.summarize(finished):
    shown.append(_stored_table(finished))
  return shown


def html(shown, drawn, finished):
  """Returns a page that needs no other file: figures are part of it."""
  environment = jinja2.Environment(
    loader=jinja2.FileSystemLoader(_TEMPLATES),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
  )
  return environment.get_template("report.html").render(
    tables=shown,
    figures={name: _embedded(figure) for name, figure in drawn.items()},
    settings=_common_settings(finished),
    environment=finished[0]["environment"],
    runs=len(finished),
    workloads=", ".join(summary.descriptions(finished)),
  )


def _embedded(figure):
  stream = io.BytesIO()
  figure.savefig(
    stream, format="png", dpi=figures.DPI, metadata={"Software": None}
  )
  return base64.b64encode(stream.getvalue()).decode()


def _to_target_table(finished):
  target = summary.targets(finished)[-1]
  rows = summary.to_target(finished, target)
  return Table(
    title=(
      f"Training at a constant rate until {summary.metric_name(finished)} "
      f"{target:g}: median (smallest-largest) over seeds"
    ),
    header=(
      "arm",
      "reached",
      "fresh consumed",
      "fresh read",
      "steps",
      "seconds",
      "gain",
      "if fresh",
    ),
    rows=[
      (
        str(row.arm),
        f"{row.reached}/{row.runs}" + _best(row),
        _spread(row.consumed),
        _spread(row.read),
        _spread(row.steps),
        _spread(row.seconds, digits=1),
        _times(row.gain),
        _times(row.arm.factor),
      )
      for row in rows
    ],
    notes=(
      "A target counts as reached when the mean of "
      f"{curves.WINDOW} evaluations in a row is no worse.",
      "Consumed: what the training asked for. Read: what was taken from the "
      "source, read-ahead",
      "and shuffle buffer included. Gain: the baseline's median of consumed "
      "over the arm's;",
      "`if fresh`: what it would be if copies were worth as much as fresh "
      "examples.",
      _buffer_note(finished),
      "Nothing slows reading down here: seconds are gained only where training "
      "waits all the same.",
    ),
  )


def _many_targets_table(finished):
  targets = summary.targets(finished)
  by_target = [summary.to_target(finished, target) for target in targets]
  return Table(
    title="Fresh examples consumed to each target, median over seeds (gain)",
    header=("arm", *(f"{target:g}" for target in targets)),
    rows=[
      (
        str(rows[0].arm),
        *(
          _number(row.consumed.median)
          + (f" ({_times(row.gain)})" if row.gain else "")
          for row in rows
        ),
      )
      for rows in zip(*by_target)
    ],
  )


def _repeats_table(finished):
  target = summary.targets(finished)[-1]
  return Table(
    title="How far from fresh the batches were, mean over seeds",
    header=("arm", "distinct in a batch", "examples from copy to copy"),
    rows=[
      (
        str(row.arm),
        f"{row.distinct_share:.0%}",
        "-" if row.repeat_distance is None else _number(row.repeat_distance),
      )
      for row in summary.to_target(finished, target)
    ],
  )


def _paced_table(finished):
  target = summary.targets(finished)[-1]
  return Table(
    title=(
      f"Wall time to {target:g} with no delay upstream: median "
      "(smallest-largest) over seeds"
    ),
    header=("arm", "training ms", "waiting", "R", "seconds", "speed-up"),
    rows=[
      (
        str(row.arm),
        f"{row.training_ms:.2f}",
        f"{row.waiting:.0%}",
        f"{row.ratio:.1f}",
        _spread(row.seconds, digits=1),
        _times(row.speedup),
      )
      for row in pacing.rows(finished)
    ],
    notes=(
      "Training: per copy, without waiting and evaluations. Waiting: for "
      "input, between evaluations.",
      "R = 1 / (1 - waiting): what input takes per copy over what training "
      "takes, where that is above 1.",
    ),
  )


def _final_table(finished):
  rows = summary.final(finished)
  return Table(
    title=(
      f"{summary.metric_name(finished).capitalize()} after a fixed number of "
      "steps with a cosine schedule"
    ),
    header=("arm", "runs", "median (range)", "steps", "fresh consumed"),
    rows=[
      (
        row.name,
        str(row.runs),
        _spread(row.metric, digits=4, never="diverged"),
        _number(row.steps),
        _spread(row.consumed),
      )
      for row in rows
    ],
  )


def _timed_table(finished):
  return Table(
    title=(
      "Slow upstream: wall time to the target against the time model: median "
      "(smallest-largest) over seeds"
    ),
    header=(
      "arm",
      "reached",
      "upstream ms",
      "downstream ms",
      "R",
      "fresh consumed",
      "copies",
      "waiting",
      "seconds",
      "time model",
      "speed-up",
      "at most",
    ),
    rows=[
      (
        str(row.arm),
        f"{row.reached}/{row.runs}",
        _upstream(row),
        f"{row.downstream_ms:.2f}",
        f"{row.ratio:.1f}",
        _spread(row.consumed),
        f"{row.copies:.2f}",
        f"{row.waiting:.0%}",
        _spread(row.seconds, digits=1),
        f"{row.expected_seconds:.1f}",
        _times(row.speedup),
        _times(row.expected_speedup),
      )
      for row in summary.timed(finished)
    ],
    notes=(
      "Milliseconds are per example: upstream, declared, per fresh one, with "
      "its jitter, the standard",
      "deviation over the mean; downstream, measured, per copy, evaluations "
      "included. Copies: examples",
      "in batches per fresh one in them. Time model: fresh consumed x "
      "max(upstream, e x downstream);",
      "on stall, e is as many copies as take no time, 8 at most.",
      "At most: min(e, R), the speed-up if copies were worth as much as fresh "
      "examples.",
    ),
  )


def _stored_table(finished):
  return Table(
    title=(
      "Read from an object store, to the target: median (smallest-largest) "
      "over seeds"
    ),
    header=(
      "arm",
      "reached",
      "store",
      "fresh",
      "requests",
      "kB",
      "copies",
      "waiting",
      "seconds",
      "speed-up",
    ),
    rows=[
      (
        str(row.arm),
        f"{row.reached}/{row.runs}",
        _store(row),
        _spread(row.consumed),
        _counted(row.requests),
        _counted(row.kilobytes),
        f"{row.copies:.2f}",
        f"{row.waiting:.0%}",
        _spread(row.seconds, digits=1),
        _times(row.speedup),
      )
      for row in stored_runs.summarize(finished)
    ],
    notes=(
      "Fresh: examples consumed. Requests and kB are those of objects, as the "
      "store counts them,",
      "if it was started for these runs. Copies: examples in batches per one "
      "that was read.",
      "Seconds and waiting include the time until there is a first batch.",
    ),
  )


def _counted(spread):
  return "-" if spread is None else _spread(spread)


def _store(row):
  if row.store is not None:
    return row.store
  bandwidth = row.store_kb_per_second
  limit = "" if bandwidth is None else f", {bandwidth:g} kB/s"
  return f"{row.store_ms:g} ms{limit}"


def _upstream(row):
  jitter = f", jitter {row.upstream_jitter:g}" if row.upstream_jitter else ""
  return f"{row.upstream_ms:.2f}{jitter}"


def _buffer_note(finished):
  """How many examples the shuffle behind the echo holds, and of how many."""
  settings = finished[0]["settings"]
  return (
    f"Shuffle buffer behind the echo: M = {settings['echo_buffer']} fresh "
    "examples; none behind echoed batches."
  )


def _best(row):
  return "" if row.reached == row.runs else f" (best {row.best:g})"


def _spread(spread, *, digits=0, never="not reached"):
  median, low, high = (
    _number(value, digits, never)
    for value in (spread.median, spread.low, spread.high)
  )
  return median if low == high else f"{median} ({low}-{high})"


def _number(value, digits=0, never="not reached"):
  return never if math.isinf(value) else f"{value:,.{digits}f}"


def _times(factor):
  return "-" if factor is None else f"{factor:.3g}x"


def _common_settings(finished):
  """Settings in which all runs agree, by name."""
  first, *others = [run["settings"] for run in finished]
  return {
    name: value
    for name, value in first.items()
    if all(other.get(name) == value for other in others)
  }
