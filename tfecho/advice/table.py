"""Advice as people read it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tfecho.advice import choosing
from tfecho.advice.units import ms, number

if TYPE_CHECKING:
  from tfecho.advice.advising import Advice


def text(advice: Advice) -> str:
  """Returns a few lines: what was measured, predicted and recommended."""
  parts = [
    _verdict(advice),
    _stages(advice),
    _predictions(advice),
    *_what_to_do(advice),
    _listed("With this echo:", advice.watch),
  ]
  return "\n\n".join(part for part in parts if part)


def _verdict(advice: Advice) -> str:
  measured = advice.measured
  now, alone = measured.baseline.seconds, measured.step.seconds
  times = f"{ms(now)} ms a step, {ms(alone)} on batches in memory"
  if not advice.input_bound:
    return f"Not input-bound: {times}. Don't echo."
  cost = measured.stages[advice.bottleneck]
  does = "waits" if cost.waits else "computes"
  return (
    f"Input-bound: {times}. The bottleneck is {advice.bottleneck}, which"
    f" {does}."
  )


def _stages(advice: Advice) -> str:
  measured = advice.measured
  lines = [("stage", "ms a batch", "of that CPU")]
  for name, cost in [*measured.stages.items(), ("train step", measured.step)]:
    lines.append((name, ms(cost.seconds), ms(cost.cpu_seconds)))
  return (
    f"Each stage alone, batches of {measured.batch_size:,}, {measured.cores}"
    f" cores:\n{_table(lines)}"
  )


def _predictions(advice: Advice) -> str:
  names = list(advice.measured.places)
  lines = [("factor", *(f"after {name}" for name in names))]
  seconds = {(x.echo_after, x.factor): x.step_seconds for x in advice.choices}
  for factor in sorted({x.factor for x in advice.choices if x.echo_after}):
    cells = (ms(seconds[name, factor]) for name in names)
    lines.append((f"{factor:g}", *cells))
  ratios = (number(advice.ratios[name], 2) for name in names)
  return (
    "Predicted ms a step with an echo, and R, upstream over downstream time:\n"
    + _table([*lines, ("R", *ratios)])
  )


def _what_to_do(advice: Advice) -> list[str]:
  """The echo and what makes it unnecessary; what does more comes first."""
  if not advice.simpler_is_as_fast:
    return [
      f"Recommended: {_recommendation(advice)}",
      _listed("Simpler, without a repeated example:", _remedies(advice)),
    ]
  return [
    _listed(
      "Recommended, since it is as fast as an echo and repeats no example:",
      _remedies(advice),
    ),
    f"Where that can't be done: {_recommendation(advice)}",
  ]


def _recommendation(advice: Advice) -> str:
  choice = advice.recommended
  if choice.echo_after is None:
    return "no echo."
  floor = advice.measured.step.seconds
  left = choice.step_seconds / floor
  why = (
    "the earliest place and smallest factor that remove the bottleneck"
    if left < choosing.WORTH_IT
    else "the earliest place and smallest factor that do as much as any; the"
    f" input still takes {number(left, 2)} times as long as the training"
  )
  times = number(advice.speedup, 2)
  return (
    f'echo_after="{choice.echo_after}", factor={choice.factor:g}:'
    f" {ms(choice.step_seconds)} ms a step, {times} times as fast;\n{why}.\n"
    f"That is worth it if training takes fewer than {times} times as many steps"
    " as without an echo."
  )


def _remedies(advice: Advice) -> list[str]:
  return [
    remedy.text
    + (
      f": {ms(remedy.step_seconds)} ms a step"
      if remedy.step_seconds is not None
      else ""
    )
    for remedy in advice.remedies
  ]


def _listed(title: str, items: Iterable[str]) -> str:
  lines = [f"- {item}." for item in items]
  return "\n".join([title, *lines]) if lines else ""


def _table(lines: Sequence[Sequence[str]]) -> str:
  widths = [max(map(len, column)) for column in zip(*lines)]
  return "\n".join(
    "  " + "  ".join(map(str.rjust, line, widths)) for line in lines
  )
