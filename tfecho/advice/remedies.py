"""What to try before an echo, and what to watch with one."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re

from tfecho import stages
from tfecho.advice import choosing
from tfecho.advice.choosing import WORTH_IT, Choice
from tfecho.advice.costs import Measurements, Place
from tfecho.advice.units import ms, num_bytes


@dataclasses.dataclass(frozen=True)
class Remedy:
  """Something that repeats no example.

  Attributes:
    kind: "cache", "threads" or "parallel_map".
    text: what to do, in a sentence or two.
    step_seconds: predicted seconds per training step; None if not predicted.
  """

  kind: str
  text: str
  step_seconds: float | None


def remedies(measured: Measurements, memory_bytes: int | None) -> list[Remedy]:
  """Returns what would help as well, the simplest first.

  Args:
    measured: what there is.
    memory_bytes: how much a cache may take; None if it is not known.

  Returns:
    Nothing if training is not input-bound.
  """
  if not choosing.is_input_bound(measured):
    return []
  tried = [
    _parallel_map(measured),
    _threads(measured),
    _cache(measured, memory_bytes),
  ]
  return [remedy for remedy in tried if remedy is not None]


def watch(measured: Measurements, choice: Choice) -> list[str]:
  """Returns what to look after when training as chosen."""
  if choice.echo_after is None:
    return []
  place = measured.places[choice.echo_after]
  if choice.echo_after == "batch":
    rate = (
      "tune the learning rate again: the same batch comes several times in a"
      " row, which wants a lower one"
    )
    worth = (
      "repeated batches are worth least: where an earlier place is not much"
      " slower, it may train faster, on fewer fresh examples"
    )
  else:
    rate = "tune the learning rate again; of repeats a lower one may be better"
    worth = "the earlier an echo stands, the more a repeat is worth"
  return [
    rate,
    worth,
    _shuffle(measured, choice, place),
    f"an epoch has {choice.factor:g} times the steps: count schedules and"
    " patience in steps",
    "leave validation data without an echo",
    "where the input's pace changes, `max_factor` instead of `factor` repeats"
    " only what training would wait for",
  ]


def free_memory() -> int | None:
  """Returns the bytes that a program can still get; None if not known."""
  meminfo = pathlib.Path("/proc/meminfo")
  if meminfo.exists():
    found = re.search(r"MemAvailable:\s+(\d+) kB", meminfo.read_text())
    if found:
      return 1024 * int(found[1])
  try:
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
  except (AttributeError, OSError, ValueError):
    return None


def _shuffle(measured: Measurements, choice: Choice, place: Place) -> str:
  if choice.echo_after == "batch":
    return (
      "batches are not shuffled; `echo_buffer` moves copies apart, at"
      f" {_size(place, 1)} for each batch that it holds"
    )
  held = stages.default_echo_buffer(measured.batch_size)
  return (
    f"the shuffle behind the echo holds {held:,} examples,"
    f" {_size(place, held)}; with a larger `echo_buffer` repeats are worth more"
  )


def _size(place: Place, count: int) -> str:
  if place.element_bytes is None:
    return "of unknown size"
  return num_bytes(count * place.element_bytes)


def _parallel_map(measured: Measurements) -> Remedy | None:
  if not measured.serial_maps:
    return None
  if measured.stages["source"].seconds < WORTH_IT * measured.step.seconds:
    return None
  return Remedy(
    "parallel_map",
    f"{measured.serial_maps} `map` in `source` makes one call at a time: give"
    " it `num_parallel_calls=tf.data.AUTOTUNE`, or what it calls to the"
    " pipeline as `read` or `decode`; a stage that can't run in parallel needs"
    " a `prefetch` behind it to run beside the next one",
    None,
  )


def _threads(measured: Measurements) -> Remedy | None:
  if measured.more_threads is None:
    return None
  name, place = next(iter(measured.places.items()))
  before, after = place.upstream.seconds, measured.more_threads.seconds
  predicted = max(
    after,
    place.downstream.seconds,
    measured.baseline.cpu_seconds / measured.cores,
  )
  if measured.baseline.seconds < WORTH_IT * predicted:
    return None
  return Remedy(
    "threads",
    f"up to {name} the input waits in too few threads; with"
    f" {measured.num_threads} of its own it took {ms(after)} instead of"
    f" {ms(before)} ms a batch: set"
    " `options.threading.private_threadpool_size` and pass"
    " `source.with_options(options)`",
    predicted,
  )


def _cache(measured: Measurements, memory_bytes: int | None) -> Remedy | None:
  """Keeping what comes out of the last stage that does the same every time."""
  for name in ("decode", "read"):
    place = measured.places.get(name)
    if place is None or memory_bytes is None:
      continue
    size = _total_bytes(measured, place)
    if size is None or size > memory_bytes:
      continue
    predicted = place.downstream.seconds
    if measured.baseline.seconds < WORTH_IT * predicted:
      return None
    return Remedy(
      "cache",
      f"all {measured.examples:,} examples take {num_bytes(size)} behind"
      f" {name}, which"
      f" fits into memory: {name} and `cache()` them in `source`, so before any"
      " echo",
      predicted,
    )
  return None


def _total_bytes(measured: Measurements, place: Place) -> float | None:
  if measured.examples is None or place.element_bytes is None:
    return None
  return measured.examples * place.element_bytes
