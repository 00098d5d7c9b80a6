"""How far a training is: steps, and seconds without validation."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import keras

from tfecho.training.layers import whole_number


class Progress(keras.callbacks.Callback):
  """A callback that counts the steps of a training, and its time.

  Attributes:
    steps: made since the training began. With `steps_per_execution`, whole
      executions.
    seconds: of training, validation left out.
  """

  def __init__(self, *, clock: Callable[[], float] = time.perf_counter):
    super().__init__()
    self._clock = clock
    self.steps = 0
    self.seconds = 0.0
    self._since: float | None = None

  def on_train_begin(self, logs: Any = None) -> None:
    """Starts anew."""
    self.steps = self._steps_before = 0
    self.seconds = 0.0
    self._since = None
    # What `fit` trains on between two calls. Asked for only once: the JAX
    # backend writes its state back whenever a callback asks for the model.
    self._steps_per_execution = whole_number(self.model.steps_per_execution)

  def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
    """Starts the clock."""
    self._steps_before = self.steps
    self._since = self._clock()

  def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
    """Counts steps."""
    self.steps = self._steps_before + batch + self._steps_per_execution

  def on_test_begin(self, logs: Any = None) -> None:
    """Stops the clock while the model is validated."""
    self._stop_clock()

  def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
    """Stops the clock."""
    self._stop_clock()

  def _stop_clock(self) -> None:
    if self._since is not None:
      self.seconds += self._clock() - self._since
      self._since = None
