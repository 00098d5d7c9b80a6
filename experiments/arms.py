"""The arms of a comparison: where the echo stands, how often it repeats.

```python
arms = cross(["baseline", "after_decode", "after_batch"], [2, 4])
[str(arm) for arm in arms]
# ['baseline', 'after_decode e=2', 'after_decode e=4', 'after_batch e=2', ...]
```
"""

from __future__ import annotations

import dataclasses
import math

PLACES = ("read", "decode", "augment", "batch")
BASELINE = "baseline"
CACHED = "cached"
ON_STALL = "on_stall"

# Of the echo on stall, which stands where an echo of a fixed factor does best.
_ON_STALL_PLACE = "decode"
_ON_STALL_MAX_FACTOR = 8

# Behind every echo but that of batches stands a shuffle, as in the paper.
_SHUFFLED = "_shuffled"
_UNSHUFFLED = "_unshuffled"


@dataclasses.dataclass(frozen=True)
class Arm:
  """One way to feed the training.

  Attributes:
    echo_after: The stage that the echo stands behind, one of `PLACES`; None is
      the baseline, without an echo.
    factor: How often each element is emitted; on stall, how often at most.
    shuffle: Whether a shuffle buffer stands behind the echo.
    on_stall: Whether it repeats only what would be waited for.
    last_factor: What `factor` falls to in the course of a run, in a straight
      line; None if it stays.
    cached: Whether what was read is kept in memory, instead of an echo, and
      comes from there in all further epochs.
  """

  echo_after: str | None = None
  factor: float = 1
  shuffle: bool = False
  on_stall: bool = False
  # Records of earlier runs have none of these.
  last_factor: float | None = None
  cached: bool = False

  def __str__(self):
    if self.echo_after is None:
      return self.kind
    if self.last_factor is not None:
      return f"{self.kind} e={self.factor:g}:{self.last_factor:g}"
    relation = "<=" if self.on_stall else "="
    return f"{self.kind} e{relation}{self.factor:g}"

  @property
  def is_echo(self):
    """Whether it has an echo, which neither the baseline nor a cache has."""
    return self.echo_after is not None

  @property
  def kind(self):
    """The arm without its factor, as `parse` takes it: "after_decode"."""
    if self.echo_after is None:
      return CACHED if self.cached else BASELINE
    if self.on_stall:
      return ON_STALL
    if self.shuffle == _shuffles_by_default(self.echo_after):
      return f"after_{self.echo_after}"
    suffix = _SHUFFLED if self.shuffle else _UNSHUFFLED
    return f"after_{self.echo_after}{suffix}"

  @property
  def mean_factor(self):
    """Examples in batches per fresh one, over a whole run."""
    if self.last_factor in (None, self.factor):
      return self.factor
    fall = self.factor - self.last_factor
    return fall / math.log(self.factor / self.last_factor)

  def falling_to(self, last_factor):
    """Returns this arm with a factor that changes during the run.

    Raises:
      ValueError: If the factor does not fall, or to less than 1.
    """
    if not 1 <= last_factor < self.factor:
      raise ValueError(
        f"must fall, to 1 at least, got {self.factor:g}:{last_factor:g}"
      )
    return dataclasses.replace(self, last_factor=last_factor)

  @property
  def tuned_as(self):
    """The kind of arm whose learning rate is used, if it has none of its own.

    How often an echo on stall repeats is known only once it has run: it is
    trained like the fixed echo in its place. What is read once and decoded
    again is the same example, and so is what comes from a cache.
    """
    if self.on_stall:
      return f"after_{_ON_STALL_PLACE}"
    if self.echo_after == "read":
      return dataclasses.replace(self, echo_after="decode").kind
    return BASELINE if self.cached else self.kind


def parse(kind, factor=1):
  """Returns the arm of this kind and factor.

  Args:
    kind: "baseline" or "after_" and one of `PLACES`, followed by "_unshuffled"
      for no shuffle buffer behind the echo, or by "_shuffled" for one behind an
      echo of batches. Or "on_stall", or "cached".
    factor: Echoing factor; the baseline and "cached" have none and ignore it,
      and so does "on_stall", which is at most 8.

  Returns:
    An `Arm`.

  Raises:
    ValueError: If there is no such kind, or `factor` is below 1.
  """
  if kind not in kinds():
    raise ValueError(f"must be one of {', '.join(kinds())}, got {kind!r}")
  if kind == BASELINE:
    return Arm()
  if kind == CACHED:
    return Arm(cached=True)
  if kind == ON_STALL:
    return Arm(_ON_STALL_PLACE, _ON_STALL_MAX_FACTOR, on_stall=True)
  if not 1 <= factor < float("inf"):
    raise ValueError(f"must be finite and at least 1, got {factor:g}")
  place = kind.split("_")[1]
  return Arm(place, factor, _shuffles(kind, place))


def kinds():
  """Returns every kind of arm there is, the baseline first."""
  arms = [
    Arm(place, shuffle=shuffle)
    for exception in (False, True)
    for place in PLACES
    for shuffle in [_shuffles_by_default(place) != exception]
  ]
  return (BASELINE, CACHED, *(arm.kind for arm in arms), ON_STALL)


def cross(kinds, factors):
  """Returns every kind with every factor; once, where it has none to choose."""
  arms = [parse(kind, factor) for kind in kinds for factor in factors]
  return list(dict.fromkeys(arms))


def _shuffles_by_default(place):
  return place != "batch"


def _shuffles(kind, place):
  if kind.endswith(_UNSHUFFLED):
    return False
  return kind.endswith(_SHUFFLED) or _shuffles_by_default(place)
