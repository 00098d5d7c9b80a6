"""What was measured of a pipeline and its training: plain numbers.

    measured = Measurements(
      batch_size=32,
      cores=2,
      stages={"read": Cost(0.040, 0.010), ...},
      places={"read": Place(upstream=..., downstream=..., ...), ...},
      step=Cost(0.012, 0.001),
      baseline=Cost(0.041, 0.018),
    )
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable, Mapping


@dataclasses.dataclass(frozen=True)
class Cost:
  """What one batch takes.

  Attributes:
    seconds: from one to the next.
    cpu_seconds: of this process, over all of its threads.
  """

  seconds: float
  cpu_seconds: float

  @property
  def waits(self) -> bool:
    """Whether not even half a core computes: a disk, a network, a lock."""
    return self.cpu_seconds < 0.5 * self.seconds


def median(costs: Iterable[Cost]) -> Cost:
  """Returns the medians of both times, each by itself."""
  costs = list(costs)
  return Cost(
    statistics.median(cost.seconds for cost in costs),
    statistics.median(cost.cpu_seconds for cost in costs),
  )


def ascending(costs: Iterable[Cost]) -> list[Cost]:
  """Returns costs that are known to ascend, as near as they can to `costs`.

  More stages can't take less time. Where they seem to, that is noise, of which
  the mean of both has less.

  >>> [cost.seconds for cost in ascending([Cost(1, 1), Cost(4, 4), Cost(2, 2)])]
  [1.0, 3.0, 3.0]
  """
  costs = list(costs)
  return [
    Cost(*times)
    for times in zip(
      _ascending(cost.seconds for cost in costs),
      _ascending(cost.cpu_seconds for cost in costs),
    )
  ]


def _ascending(values: Iterable[float]) -> list[float]:
  """Isotonic regression: neighbours in the wrong order are averaged."""
  groups: list[list[float]] = []
  for value in values:
    groups.append([value])
    while len(groups) > 1 and _mean(groups[-2]) > _mean(groups[-1]):
      last = groups.pop()
      groups[-1] += last
  return [_mean(group) for group in groups for _ in group]


def _mean(values: list[float]) -> float:
  return sum(values) / len(values)


@dataclasses.dataclass(frozen=True)
class Place:
  """A place where an echo can stand.

  Attributes:
    upstream: what everything before it takes for a batch of fresh examples, if
      nothing behind it holds it up.
    downstream: what a training step takes, everything behind the place
      included, if what passes the place comes from memory.
    element_bytes: mean size of what passes; None if it is not known.
  """

  upstream: Cost
  downstream: Cost
  element_bytes: float | None


@dataclasses.dataclass(frozen=True)
class Measurements:
  """Everything that advice is based on; costs are for one batch.

  Attributes:
    batch_size: examples in a batch.
    cores: processor cores that this process may use.
    stages: by name, each stage alone, fed from memory; "read" with the source.
    places: by the stage before them, in the order that elements take.
    step: the training step on a batch that is in memory.
    baseline: a step of the training as it is, without an echo.
    examples: in one pass over the source; None if it is not known.
    serial_maps: maps in the source that call their function one at a time.
    more_threads: `upstream` of the first place with `num_threads` threads for
      the input alone; None where it computes rather than waits.
    num_threads: see `more_threads`.
  """

  batch_size: int
  cores: int
  stages: Mapping[str, Cost]
  places: Mapping[str, Place]
  step: Cost
  baseline: Cost
  examples: int | None = None
  serial_maps: int = 0
  more_threads: Cost | None = None
  num_threads: int = 0
