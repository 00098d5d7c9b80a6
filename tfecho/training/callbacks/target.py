"""The end of a training at a target, and what it took."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from typing import Any

from tfecho.checks import check_number, checked_int
from tfecho.training.callbacks.progress import Progress

# Rounding errors of means: 0.99 three times must count as 0.99.
_TOLERANCE = 1e-9


class StopAtTarget(Progress):
  """Stops the training at a target, and says what it took to get there.

  A single evaluation crosses a target by luck. So a target may be asked to be
  the mean of the last few (`mean_of`), or to stay reached (`patience`).

  Attributes:
    metric: what it watches.
    reached: None, or what it took: `epoch`, counted from 0; `steps`; `seconds`
      of training, validation left out; and the logs of that evaluation, with
      `fresh_read` and `fresh_consumed` where an `EchoMonitor` stands before
      this callback. With `steps_per_execution`, steps are whole executions.

  >>> import keras, numpy
  >>> from tfecho.training import StopAtTarget
  >>> model = keras.Sequential([keras.layers.Dense(1)])
  >>> model.compile(loss="mse")
  >>> stop = StopAtTarget("loss", 1e9)
  >>> ones = numpy.ones((6, 1))
  >>> _ = model.fit(ones, ones, 2, epochs=9, verbose=0, callbacks=[stop])
  >>> stop.reached["epoch"], stop.reached["steps"]
  (0, 3)
  """

  def __init__(
    self,
    metric: str,
    value: float,
    *,
    patience: int = 0,
    mean_of: int = 1,
    mode: str | None = None,
    clock: Callable[[], float] = time.perf_counter,
  ):
    """Watches the metric in the logs of every epoch that has it.

    Args:
      metric: its name in the logs, such as "val_accuracy".
      value: what it has to reach.
      patience: for how many further evaluations in a row it has to stay
        reached. What is recorded is the first of them.
      mean_of: of how many evaluations, up to the present one, the mean has to
        reach it. Before there are as many, nothing is reached.
      mode: "max" if a larger metric is better, "min" if a smaller one is. Need
        not be given for names that end with "accuracy" or "loss".
      clock: what tells the time in seconds.

    Raises:
      ValueError: if an argument is not as described; in training, if there is
        no such metric.
    """
    super().__init__(clock=clock)
    check_number("value", value)
    self.metric = metric
    self._value = value
    self._sign = _sign(metric, mode)
    self._patience = checked_int("patience", patience, at_least=0)
    self._mean_of = checked_int("mean_of", mean_of, at_least=1)
    self.reached: dict[str, Any] | None = None

  def on_train_begin(self, logs: Any = None) -> None:
    """Starts anew."""
    super().on_train_begin(logs)
    self.reached = None
    self._records: list[dict[str, Any]] = []
    self._values: list[float] = []
    self._seen: set[str] = set()

  def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
    """Stops the training if the target has been reached for long enough."""
    super().on_epoch_end(epoch, logs)
    logs = logs or {}
    self._seen.update(logs)
    if self.metric not in logs:
      self._check_missing(logs)
      return
    self._values.append(float(logs[self.metric]))
    if not self._is_reached():
      self._records = []
      return
    counts = {"epoch": epoch, "steps": self.steps, "seconds": self.seconds}
    self._records.append({**logs, **counts})
    if len(self._records) > self._patience:
      self.reached = self._records[0]
      self.model.stop_training = True

  def on_train_end(self, logs: Any = None) -> None:
    """Warns if there was nothing to watch."""
    if not self._values:
      warnings.warn(
        f"`StopAtTarget` never saw the metric {self.metric!r}, only"
        f" {sorted(self._seen)}",
        stacklevel=2,
      )

  def _is_reached(self) -> bool:
    if len(self._values) < self._mean_of:
      return False
    mean = math.fsum(self._values[-self._mean_of :]) / self._mean_of
    return self._sign * (mean - self._value) >= -_TOLERANCE

  def _check_missing(self, logs: dict[str, Any]) -> None:
    # Epochs without validation have no metrics of it.
    validated = any(name.startswith("val_") for name in logs)
    if validated or not self.metric.startswith("val_"):
      raise ValueError(
        f"`metric` must be one of {sorted(logs)}, got {self.metric!r}"
      )


def _sign(metric: str, mode: str | None) -> int:
  if mode is None:
    mode = {"accuracy": "max", "loss": "min"}.get(metric.split("_")[-1])
    if mode is None:
      raise ValueError(
        f"`mode` must be given for the metric {metric!r}, whose name ends with"
        " neither 'accuracy' nor 'loss'"
      )
  if mode not in ("max", "min"):
    raise ValueError(f"`mode` must be 'max', 'min' or None, got {mode!r}")
  return 1 if mode == "max" else -1
