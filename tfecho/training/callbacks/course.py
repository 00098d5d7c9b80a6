"""What happened in a training, and where it ends."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tfecho.training.callbacks.progress import Progress


class Course(Progress):
  """Ends a training after so many steps, and keeps what was seen until then.

  It stands behind all callbacks whose logs it keeps.

  Attributes:
    rows: for every epoch a dict of `epoch`, counted from 0, `steps`,
      `fresh_examples`, `seconds`, and its logs. Of a training that is resumed,
      epochs and seconds since then; steps and examples are all of them.
  """

  def __init__(
    self,
    *,
    total_steps: int,
    first_step: int,
    fresh_examples: Callable[[int], int | None],
    clock: Callable[[], float] = time.perf_counter,
  ):
    """Describes the training.

    Args:
      total_steps: where it ends, in the middle of an epoch, too.
      first_step: how many were made before, if it is resumed.
      fresh_examples: how many so many steps take, or None if nobody knows.
        Asked for those that are not counted: all of them without an echo that
        counts, and those of the steps before, of which no count is kept.
      clock: what tells the time in seconds.
    """
    super().__init__(clock=clock)
    self._total_steps = total_steps
    self._first_step = first_step
    self._fresh_examples = fresh_examples
    self.rows: list[dict[str, Any]] = []

  @property
  def total_steps_made(self) -> int:
    """Steps, those included that were made before a resumed training."""
    return self._first_step + self.steps

  def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
    """Ends the training when its time has come."""
    if self.total_steps_made >= self._total_steps:
      self.model.stop_training = True

  def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
    """Keeps what is known at this point."""
    super().on_epoch_end(epoch, logs)
    logs = {k: np.asarray(v).tolist() for k, v in (logs or {}).items()}
    self.rows.append(
      {
        "epoch": epoch,
        "steps": self.total_steps_made,
        "fresh_examples": self._fresh(logs),
        "seconds": self.seconds,
        **logs,
      }
    )

  def _fresh(self, logs: dict[str, Any]) -> int | None:
    """Those used so far: as many as an `EchoMonitor` counted, and those before.

    It begins at 0 in every process.
    """
    counted = logs.get("fresh_consumed", math.nan)
    if math.isnan(counted):  # There is no echo that counts.
      return self._fresh_examples(self.total_steps_made)
    before = self._fresh_examples(self._first_step) if self._first_step else 0
    return None if before is None else before + int(counted)
