"""Measures a pipeline and its training: every stage, every place, every side.

    measured = measure(pipeline, train_step, seconds=10, on_progress=print)

What is measured runs as `Pipeline.dataset` runs it: the same maps with the same
parallelism, ahead of what follows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfecho import stages
from tfecho.advice.costs import Cost, Measurements, Place, ascending, median
from tfecho.advice.probes import Draws, Steps
from tfecho.pipeline import PLACES, Pipeline

# Rounds, in each of which everything is measured once: what disturbs a machine
# lasts longer than one measurement, and the median leaves it out.
_ROUNDS = 5
_FEWEST_ROUNDS = 3

# Elements of `source` that are shuffled at most, so that none has to wait for
# a buffer of many thousands to fill.
_BATCHES_SHUFFLED = 4

# Parts of the names: one for each place, for the baseline, and for the rest.
_SHARES = len(PLACES) + 2

# Of the echo whose own cost is measured.
_FACTOR = 4

# Elements whose size is taken.
_ELEMENTS_WEIGHED = 16

# Threads that wait cost little; more than these gain little.
_THREADS_PER_CORE = 4
_LEAST_THREADS = 16

_ENDLESS = tf.data.INFINITE_CARDINALITY

Probe = Callable[[float], Cost]


def measure(
  pipeline: Pipeline,
  train_step: Callable,
  *,
  seconds: float,
  on_progress: Callable[[str], Any],
) -> Measurements:
  """Measures a pipeline without an echo, in all of its parts.

  Args:
    pipeline: what to measure.
    train_step: called with a batch.
    seconds: how long to measure, about; slow stages take longer.
    on_progress: called with a line of text now and then.

  Returns:
    The medians.

  Raises:
    ValueError: if the pipeline makes no batch.
  """
  on_progress("reading a batch, tracing functions")
  parts = _Parts(pipeline)
  probes = _probes(parts, train_step)
  slot = seconds / len(probes) / _ROUNDS
  medians = _medians(probes, slot, on_progress)
  places = _sides(parts, medians)
  num_threads = max(_THREADS_PER_CORE * stages.cores(), _LEAST_THREADS)
  return Measurements(
    batch_size=pipeline.batch_size,
    cores=stages.cores(),
    stages=_stages(parts, medians),
    places=places,
    # What is mixed on the host is a part of the input, wherever an echo stands.
    step=medians.get("step", places["batch"].downstream),
    baseline=medians["baseline"],
    examples=_examples(pipeline.source),
    serial_maps=_serial_maps(pipeline.source),
    more_threads=_with_threads(parts, medians, num_threads, slot),
    num_threads=num_threads,
  )


class _Parts:
  """The parts of a pipeline, each as a dataset that does not end.

  Attributes:
    batch_size: examples in a batch.
    stages: names of those that there are, the source first.
    places: names of the stages that an echo can stand behind.
  """

  def __init__(self, pipeline: Pipeline):
    self._pipeline = pipeline
    seeds = stages.spread(pipeline.seed, pipeline.shard_index)
    self._stages: dict[str, stages.Transformation] = {
      "source": stages.unchanged,
      "read": stages.read(pipeline.read),
      "decode": stages.mapped("decode", pipeline.decode),
      "augment": stages.mapped("augment", pipeline.augment, seeds.augment),
      "batch": lambda data: data.batch(
        pipeline.batch_size, drop_remainder=pipeline.drop_remainder
      ),
      "mix": stages.mapped("mix", pipeline.mix, seeds.mix),
    }
    self._echo = stages.echoed(
      _FACTOR,
      rounding="even",
      buffer_size=2 * pipeline.batch_size,
      min_distance=pipeline.batch_size,
      seeds=seeds,
      stats=None,
      implementation="auto",
    )
    self.batch_size = pipeline.batch_size
    self.stages = _present(pipeline)
    self.places = _places(self.stages)
    self._in_memory = self._keep()

  def source(self, share: int) -> tf.data.Dataset:
    """What the pipeline starts from, over and over.

    Names are shared out: whoever reads what another one has just read would
    find it in the memory of the operating system.
    """
    data = self._pipeline.source
    if self._pipeline.read is not None:
      count = int(data.cardinality())
      if count >= _SHARES * self.batch_size or count == _ENDLESS:
        data = data.shard(_SHARES, share)
    if self._pipeline.shuffle_buffer is not None:
      most = _BATCHES_SHUFFLED * self.batch_size
      data = data.shuffle(min(self._pipeline.shuffle_buffer, most))
    return data.repeat()

  def upstream(
    self, place: str, share: int, num_threads: int | None = None
  ) -> tf.data.Dataset:
    """What stands before a place, from the source on."""
    data = self.source(share)
    if num_threads is not None:
      data = data.apply(stages.with_threads(num_threads))
    for name in PLACES[: PLACES.index(place) + 1]:
      data = data.apply(self._stages[name])
    # Where an echo of examples reads ahead, each costs a change of threads.
    return data if place == "batch" else data.prefetch(tf.data.AUTOTUNE)

  def downstream(self, place: str) -> tf.data.Dataset:
    """What stands behind a place, an echo there included, from memory."""
    data = self._in_memory[place]
    if place != "batch":  # There, it costs nothing beside a training step.
      data = data.apply(self._echo)
    for name in PLACES[PLACES.index(place) + 1 :]:
      data = data.apply(self._stages[name])
    return self.mixed(data)

  def mixed(self, data: tf.data.Dataset) -> tf.data.Dataset:
    """What a training gets of batches."""
    return data.apply(self._stages["mix"])

  def in_memory(self) -> tf.data.Dataset:
    """What a training gets, at no cost."""
    return self._in_memory["mix"]

  def stage(self, name: str) -> tf.data.Dataset:
    """A stage alone, on elements from memory."""
    if name == "source":
      return self.source(0)
    names = list(self._stages)
    before = names[names.index(name) - 1]
    return self._in_memory[before].apply(self._stages[name])

  def per_batch(self, name: str) -> int:
    """How many elements behind a stage make a batch."""
    return 1 if name in ("batch", "mix") else self.batch_size

  def element_bytes(self, place: str) -> float | None:
    """The mean size of what passes a place."""
    count = min(_ELEMENTS_WEIGHED, self.per_batch(place))
    total = 0
    for element in self._in_memory[place].take(count):
      size = _num_bytes(element)
      if size is None:
        return None
      total += size
    return total / count

  def _keep(self) -> dict[str, tf.data.Dataset]:
    """A batch's worth of elements in memory, as they come out of each stage."""
    data, kept = self.source(_SHARES - 1), {}
    for name, stage in self._stages.items():
      elements = data.apply(stage).take(self.per_batch(name)).cache()
      # A cache that was not read to its end is thrown away.
      if sum(1 for _ in elements) == 0:
        raise ValueError(f"`pipeline` has no element behind {name}")
      kept[name] = data = elements.repeat()
    return kept


def _present(pipeline: Pipeline) -> tuple[str, ...]:
  functions = [x for x in PLACES[:3] if getattr(pipeline, x) is not None]
  mix = [] if pipeline.mix is None else ["mix"]
  return ("source", *functions, "batch", *mix)


def _places(present: tuple[str, ...]) -> tuple[str, ...]:
  """The places that differ: not two without a stage between them."""
  places = tuple(name for name in present if name in PLACES)
  if "read" in present or "decode" in present:
    return places
  # Right behind a source that reads, and decodes, by itself.
  return ("decode", *places)


def _probes(parts: _Parts, train_step: Callable) -> dict[Any, Probe]:
  whole = parts.mixed(parts.upstream("batch", len(PLACES)))
  probes: dict[Any, Probe] = {"baseline": Steps(whole, train_step)}
  if "mix" in parts.stages:
    probes["step"] = Steps(parts.in_memory(), train_step)
  for name in parts.stages:
    if name != "read":  # What has just been read would be read again.
      probes["stage", name] = Draws(
        parts.stage(name), batch_size=parts.per_batch(name)
      )
  for share, place in enumerate(parts.places):
    probes["upstream", place] = Draws(
      parts.upstream(place, share), batch_size=parts.per_batch(place)
    )
    probes["downstream", place] = Steps(parts.downstream(place), train_step)
  return probes


def _medians(
  probes: dict[Any, Probe], slot: float, on_progress: Callable[[str], Any]
) -> dict[Any, Cost]:
  """The cost of each over the rounds, measured for `slot` seconds in each."""
  start = time.perf_counter()
  costs: dict[Any, list[Cost]] = {name: [] for name in probes}
  for count in range(1, _ROUNDS + 1):
    for name, probe in probes.items():
      costs[name].append(probe(slot))
    elapsed = time.perf_counter() - start
    on_progress(f"round {count} of {_ROUNDS} after {elapsed:.1f} s")
    # Where a batch takes longer than its slot.
    if count >= _FEWEST_ROUNDS and elapsed > slot * len(probes) * _ROUNDS:
      break
  return {name: median(each) for name, each in costs.items()}


def _stages(parts: _Parts, medians: dict[Any, Cost]) -> dict[str, Cost]:
  """Every stage alone, but reading, which is measured with the source."""
  return {
    name: medians["upstream" if name == "read" else "stage", name]
    for name in parts.stages
  }


def _sides(parts: _Parts, medians: dict[Any, Cost]) -> dict[str, Place]:
  """What stands before and behind every place: ever more, and ever less."""
  names = parts.places
  upstream = ascending(medians["upstream", name] for name in names)
  downstream = ascending(medians["downstream", name] for name in names[::-1])
  return {
    name: Place(before, behind, parts.element_bytes(name))
    for name, before, behind in zip(names, upstream, downstream[::-1])
  }


def _with_threads(
  parts: _Parts, medians: dict[Any, Cost], num_threads: int, slot: float
) -> Cost | None:
  """What the first place's upstream takes, if it waits, with more threads."""
  first = parts.places[0]
  if not medians["upstream", first].waits:
    return None
  data = parts.upstream(first, _SHARES - 1, num_threads)
  probe = Draws(data, batch_size=parts.per_batch(first))
  return median(probe(slot) for _ in range(_FEWEST_ROUNDS))


def _examples(source: tf.data.Dataset) -> int | None:
  cardinality = int(source.cardinality())
  return cardinality if cardinality >= 0 else None


def _serial_maps(source: tf.data.Dataset) -> int:
  count = int(type(source).__name__ == "_MapDataset")
  return count + sum(map(_serial_maps, source._inputs()))


def _num_bytes(element: Any) -> int | None:
  """What the tensors of an element refer to; None if it is not known."""
  size = 0
  for tensor in tf.nest.flatten(element, expand_composites=True):
    dtype = getattr(tensor, "dtype", tf.variant)
    if dtype in (tf.variant, tf.resource):
      return None
    if dtype == tf.string:
      size += int(tf.reduce_sum(tf.strings.length(tensor)))
    else:
      size += int(tf.size(tensor)) * dtype.size
  return size
