"""The time model: how long a training step takes with an echo in some place.

Both sides of an echo work at the same time, the upstream side once for every
`e` steps. Waiting overlaps with everything; computing shares the cores, the
training step included where it runs on them:

    ideal(e) = max(T_up / e, T_down, (C_up / e + C_down) / cores)

with T the time of each side by itself and C its processor time. T_down is that
of a training step whose input comes from memory right behind the echo, so it
holds whatever the two disturb each other. What the upstream side and the
training disturb each other (locks, caches, threads that wait inside of an
operation) shows where there is no echo, and is in proportion to the upstream
work that a step costs:

    predicted(e) = max(T_down, ideal(e) + (measured(1) - ideal(1)) / e)

which is what was measured at e = 1, and T_down for large e.

Source: the first two terms are those of Choi, Passos, Shallue, Dahl, "Faster
Neural Network Training with Data Echoing", arXiv 1907.05550; the others are
ours.
"""

from __future__ import annotations

from tfecho.advice.costs import Measurements, Place


def step_seconds(measured: Measurements, place: Place, factor: float) -> float:
  """Returns the predicted seconds per training step.

  Args:
    measured: what there is without an echo.
    place: where the echo stands.
    factor: how often it emits each element.

  Returns:
    Seconds.
  """
  ideal = _ideal(place, factor, measured.cores)
  disturbance = measured.baseline.seconds - _ideal(place, 1, measured.cores)
  return max(place.downstream.seconds, ideal + disturbance / factor)


def ratio(place: Place) -> float:
  """Returns R, the upstream over the downstream time of a batch."""
  return place.upstream.seconds / place.downstream.seconds


def _ideal(place: Place, factor: float, cores: int) -> float:
  up, down = place.upstream, place.downstream
  return max(
    up.seconds / factor,
    down.seconds,
    (up.cpu_seconds / factor + down.cpu_seconds) / cores,
  )
