"""Measures contenders side by side and holds what they cost to bounds.

    case = Case(
      what="scalars, e = 2",
      unit="us per element",
      contenders={"echo(2)": start_echo, "idiom": start_idiom},
      bounds=[Bound("echo(2)", "idiom", at_most=1 / 15)],
    )
    rows = measure([case], rounds=7)
    print(table(rows))
    sys.exit(exit_status(rows))

Nothing here knows TensorFlow: a contender is a function that gets ready and
returns a *probe*, and every call of the probe returns one measured cost, or
several of them by name: those of a contender "echo" that returns
`{"waiting": 0.1}` are told apart as "echo, waiting".
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import json
import os
import pathlib
import platform
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Probe = Callable[[], "float | Mapping[str, float]"]

# What is bounded, by its name: from the costs of both sides in one round.
# The bound of a deviation holds upwards and downwards.
COMPARISONS = {
  "ratio": lambda ours, other: ours / other,
  "excess": lambda ours, other: ours - other,
  "deviation": lambda ours, other: ours / other - 1,
}

_PACKAGES = ("tfecho", "tensorflow", "keras", "numpy")


@dataclasses.dataclass(frozen=True)
class Bound:
  """`ours` may cost at most `at_most` times what `other` costs.

  Attributes:
    ours: A contender's name, and that of the cost where there are several.
    other: The same of what it is compared with.
    at_most: The largest ratio allowed, or whatever is compared; None where it
      is only reported.
    compare: One of `COMPARISONS`.
  """

  ours: str
  other: str
  at_most: float | None = None
  compare: str = "ratio"


@dataclasses.dataclass(frozen=True)
class Case:
  """Contenders that do the same work, and what is claimed of them.

  Attributes:
    what: The title: what is measured.
    unit: The unit of what the probes return.
    contenders: By name, a function that gets ready and returns a probe.
    bounds: The comparisons; one row of the table each.
    max_rounds: Fewer rounds than asked for, where one is slow and sure.
  """

  what: str
  unit: str
  contenders: Mapping[str, Callable[[], Probe]]
  bounds: Sequence[Bound]
  max_rounds: int | None = None


@dataclasses.dataclass(frozen=True)
class Row:
  """One comparison, measured.

  Attributes:
    what: The case's title.
    unit: The unit of the costs.
    bound: Who is compared with whom, and the bound.
    ours: The cost of `bound.ours` in each round.
    other: The cost of `bound.other` in each round.
  """

  what: str
  unit: str
  bound: Bound
  ours: Sequence[float]
  other: Sequence[float]

  @property
  def value(self) -> float:
    """Median over the rounds of the comparison *within* a round.

    What disturbs a shared machine lasts longer than a round, so that both
    sides of a comparison suffer alike.
    """
    compare = COMPARISONS[self.bound.compare]
    value = statistics.median(map(compare, self.ours, self.other))
    return abs(value) if self.bound.compare == "deviation" else value

  @property
  def ok(self) -> bool:
    return self.bound.at_most is None or self.value <= self.bound.at_most


def measure(
  cases: Iterable[Case],
  rounds: int,
  *,
  on_case: Callable[[str], Any] = lambda line: None,
) -> list[Row]:
  """Measures every case.

  Args:
    cases: What to measure.
    rounds: How often every contender is measured.
    on_case: Called with a line of text after each comparison.

  Returns:
    One `Row` per bound, in order.
  """
  rows = []
  for case in cases:
    costs = interleave(case.contenders, min(rounds, case.max_rounds or rounds))
    for bound in case.bounds:
      ours, other = costs[bound.ours], costs[bound.other]
      rows.append(Row(case.what, case.unit, bound, ours, other))
      on_case(" | ".join(_columns(rows[-1])))
  return rows


def interleave(
  contenders: Mapping[str, Callable[[], Probe]], rounds: int
) -> dict[str, list[float]]:
  """Costs by contender, measured A B C, A B C, ... over `rounds` rounds."""
  probes = {name: start() for name, start in contenders.items()}
  costs = collections.defaultdict(list)
  for _ in range(rounds):
    for name, probe in probes.items():
      for full_name, cost in _named(name, probe()).items():
        costs[full_name].append(cost)
  return dict(costs)


def _named(name: str, cost: float | Mapping[str, float]) -> dict[str, float]:
  if isinstance(cost, Mapping):
    return {f"{name}, {quantity}": each for quantity, each in cost.items()}
  return {name: cost}


def exit_status(rows: Iterable[Row]) -> int:
  """0 where every bound is kept, else 1."""
  return 0 if all(row.ok for row in rows) else 1


def table(rows: Sequence[Row]) -> str:
  """A table for people; costs are medians over the rounds."""
  lines = [("what", "ours", "other", "compared", "bound", "ok")]
  lines += [_columns(row) for row in rows]
  widths = [max(map(len, column)) for column in zip(*lines)]
  return "\n".join(
    "  ".join(map(str.ljust, line, widths)).rstrip() for line in lines
  )


def _columns(row: Row) -> tuple[str, ...]:
  """The cells of a row of the table."""
  at_most = row.bound.at_most
  return (
    f"{row.what} [{row.unit}]",
    f"{row.bound.ours}: {statistics.median(row.ours):.4g}",
    f"{row.bound.other}: {statistics.median(row.other):.4g}",
    _shown(row.value, row.bound.compare),
    "-" if at_most is None else _shown(at_most, row.bound.compare),
    "-" if at_most is None else "yes" if row.ok else "NO",
  )


def _shown(value: float, compare: str) -> str:
  return f"{value:.1%}" if compare == "deviation" else f"{value:.3g}"


def write_json(path: str | os.PathLike, rows: Iterable[Row]) -> None:
  """Writes all measurements with what is needed to judge them later."""
  record = {
    "date": datetime.datetime.now(datetime.timezone.utc).isoformat(),
    "versions": _versions(),
    "cpu": _cpu(),
    "cores": os.cpu_count(),
    "load": os.getloadavg(),
    "rows": [
      {**dataclasses.asdict(row), "value": row.value, "ok": row.ok}
      for row in rows
    ],
  }
  pathlib.Path(path).write_text(json.dumps(record, indent=2) + "\n")


def _versions() -> dict[str, str]:
  """Versions of Python and of those packages that took part."""
  imported = [name for name in _PACKAGES if name in sys.modules]
  return {
    "python": platform.python_version(),
    **{name: sys.modules[name].__version__ for name in imported},
  }


def _cpu() -> str:
  """The processor's name, as well as the system knows it."""
  cpuinfo = pathlib.Path("/proc/cpuinfo")
  if cpuinfo.exists():
    for line in cpuinfo.read_text().splitlines():
      if line.startswith("model name"):
        return line.partition(":")[2].strip()
  return platform.processor() or platform.machine()
