"""The tables of a report: one for each thing that was measured."""

from __future__ import annotations

import dataclasses

from experiments import arms, curves, pacing, records, summary
from experiments.formatting import number, spread, times
from experiments.learning_rates import of_run
from experiments.store import runs as stored_runs


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


def learning_rates(finished, rates):
  """Returns a `Table` of them, and of how each was found.

  Args:
    finished: List of records.
    rates: Entries as `learning_rates.load` returns them.
  """
  runs = map(records.settings_of, summary.in_order(finished))
  by_arm = {(run.measure, run.arm): run for run in runs}
  return Table(
    title="Learning rates, and the search that each is from",
    header=("arm", "measure", "learning rate", "what each that was tried gave"),
    rows=[
      (
        str(run.arm),
        run.measure,
        f"{run.learning_rate:g}",
        _tried(of_run(rates, run), run.arm),
      )
      for run in by_arm.values()
    ],
    notes=(
      "Tried under seeds that no run here has. Gave: fresh examples, the "
      "geometric mean over all targets",
      "and seeds, a missed target counting as twice the run; or the final "
      "metric, their mean.",
    ),
  )


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
        spread(row.consumed),
        spread(row.read),
        spread(row.steps),
        spread(row.seconds, digits=1),
        times(row.gain),
        times(row.arm.factor),
      )
      for row in rows
    ],
    notes=(
      f"A target is reached where the mean of {curves.WINDOW} evaluations is, "
      "which stands for the middle",
      "one; between two of them in proportion.",
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
          number(row.consumed.median)
          + (f" ({times(row.gain)})" if row.gain else "")
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
        "-" if row.repeat_distance is None else number(row.repeat_distance),
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
        spread(row.seconds, digits=1),
        times(row.speedup),
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
        spread(row.metric, digits=4, never="diverged"),
        number(row.steps),
        spread(row.consumed),
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
        spread(row.consumed),
        f"{row.copies:.2f}",
        f"{row.waiting:.0%}",
        spread(row.seconds, digits=1),
        f"{row.expected_seconds:.1f}",
        times(row.speedup),
        times(row.expected_speedup),
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
        spread(row.consumed),
        _counted(row.requests),
        _counted(row.kilobytes),
        f"{row.copies:.2f}",
        f"{row.waiting:.0%}",
        spread(row.seconds, digits=1),
        times(row.speedup),
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


def _tried(entry, arm):
  """What each rate gave, and to which arm, if it is that of another one."""
  trials = entry and entry.get("trials")
  if not trials:
    return "-"
  tuned = arms.parse(entry["kind"], entry["factor"])
  of_another = "" if tuned == arm else f"as {tuned}: "
  return of_another + "; ".join(
    f"{rate}: {_gave(value)}" for rate, value in trials.items()
  )


def _gave(value):
  return "diverged" if value is None else f"{value:,}"


def _counted(row):
  return "-" if row is None else spread(row)


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
