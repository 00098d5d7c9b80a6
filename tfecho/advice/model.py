"""The time model: how long a training step takes with an echo in some place.

Both sides of an echo work at the same time, the upstream side once for every
`e` steps. Waiting overlaps with everything; computing shares the cores, the
training step included where it runs on them:

    predicted(e) = max(
      T_up / e + D,
      T_down,
      (C_up / e + C_down) / cores,
    )

T is the time of each side by itself and C its processor time; T_down is that of
a training step whose input comes from memory right behind the echo. D is what
every step takes away from the upstream side: cores, locks, and threads, of
which a read that waits inside of an operation occupies one. It shows where
there is no echo, as the time by which a step is longer than T_up.

Source: T_up / e and T_down are from Choi, Passos, Shallue, Dahl, "Faster Neural
Network Training with Data Echoing", arXiv 1907.05550; the others are ours.
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
  up, down = place.upstream, place.downstream
  # That a part takes longer than the whole is noise: believe the whole.
  alone = min(up.seconds, measured.baseline.seconds)
  disturbance = measured.baseline.seconds - alone
  return max(
    alone / factor + disturbance,
    down.seconds,
    (up.cpu_seconds / factor + down.cpu_seconds) / measured.cores,
  )


def ratio(place: Place) -> float:
  """Returns R, the upstream over the downstream time of a batch."""
  return place.upstream.seconds / place.downstream.seconds
