"""What the echo did, and what input cost, in the logs of every epoch."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from typing import Any

import keras

from tfecho.checks import checked_int
from tfecho.stats import Stats, check_stats
from tfecho.training import workers


class EchoMonitor(keras.callbacks.Callback):
  """Puts into the logs of an epoch what the echo did and what input cost.

  ```
  fresh_read           fresh examples read since the training began
  fresh_consumed       those of them of which a copy left the echo
  copies_per_fresh     copies that left the echo for each of them, this epoch
  wait_share           part of the time spent waiting for input, this epoch
  examples_per_second  that the model trained on, this epoch
  ```

  They appear at the end of an epoch, in the progress bar, in `History`, and in
  whatever stands behind this callback: `CSVLogger`, `TensorBoard`. What has not
  been counted is nan: the first three are counted by `echo(..., stats=stats)`,
  the others by `monitor(stats)`; it warns where neither counts. The time of an
  epoch ends where its validation begins; the first one contains the tracing of
  the model.

  Examples that were read ahead, or wait between the echo and the model, are
  read or consumed already. Under a distribution strategy the wait is that of
  the thread which fills its buffers, not that of the model. Several workers are
  added up, the wait averaged.

  >>> import keras
  >>> from tfecho.training import EchoMonitor
  >>> stats = tfecho.Stats()
  >>> dataset = tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat(6)
  >>> dataset = dataset.apply(tfecho.echo(2, stats=stats)).batch(4)
  >>> dataset = dataset.apply(tfecho.monitor(stats))
  >>> model = keras.Sequential([keras.layers.Dense(1)])
  >>> model.compile(loss="mse")
  >>> monitor = EchoMonitor(stats, batch_size=4)
  >>> logs = model.fit(dataset, verbose=0, callbacks=[monitor]).history
  >>> logs["fresh_read"], logs["copies_per_fresh"]
  ([6], [2.0])
  """

  def __init__(
    self,
    stats: Stats,
    *,
    batch_size: int,
    examples_per_element: int = 1,
    clock: Callable[[], float] = time.perf_counter,
  ):
    """Reads `stats`, and only that.

    Args:
      stats: what counts in the pipeline.
      batch_size: examples in a batch that passes the monitor.
      examples_per_element: those in an element that passes the echo, which is
        `batch_size` where the echo stands behind the batch.
      clock: what tells the time in seconds.

    Raises:
      ValueError: if an argument is not as described.
    """
    super().__init__()
    check_stats(stats)
    self._stats = stats
    self._batch_size = checked_int("batch_size", batch_size, at_least=1)
    self._examples_per_element = checked_int(
      "examples_per_element", examples_per_element, at_least=1
    )
    self._clock = clock
    self._at_start = self._at_epoch = self._now()
    self._at_end: dict[str, float] | None = None

  def on_train_begin(self, logs: Any = None) -> None:
    """Starts to count."""
    self._at_start = self._now()

  def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
    """Starts to count for this epoch."""
    self._at_epoch, self._at_end = self._now(), None

  def on_test_begin(self, logs: Any = None) -> None:
    """Leaves validation out."""
    self._at_end = self._at_end or self._now()

  def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
    """Adds the figures to the logs."""
    if logs is not None:
      logs.update(self._figures(self._at_end or self._now()))

  def _now(self) -> dict[str, float]:
    stats = self._stats
    return {
      "read": stats.read,
      "consumed": stats.consumed,
      "emitted": stats.emitted,
      "requests": stats.requests,
      "wait": stats.wait_seconds,
      "time": self._clock(),
    }

  def _figures(self, now: dict[str, float]) -> dict[str, float]:
    training = self._since(self._at_start, now)
    epoch = self._since(self._at_epoch, now)
    if not any(training[name] for name in ("read", "emitted", "requests")):
      warnings.warn(
        "`stats` has counted nothing in this training: give the same to the"
        " echo, as in `Pipeline.dataset(..., stats=stats)`, and to"
        " `tfecho.monitor(stats)`, and train on that",
        stacklevel=2,
      )
    seconds = now["time"] - self._at_epoch["time"]
    wait = epoch["wait"] if epoch["requests"] else math.nan
    examples = epoch["requests"] * self._batch_size or math.nan
    is_echoed = training["read"] or training["emitted"]
    examples_per_element = self._examples_per_element if is_echoed else math.nan
    return {
      "fresh_read": round(training["read"]) * examples_per_element,
      "fresh_consumed": round(training["consumed"]) * examples_per_element,
      "copies_per_fresh": _ratio(epoch["emitted"], epoch["consumed"]),
      "wait_share": _ratio(wait, epoch["time"]),
      "examples_per_second": _ratio(examples, seconds),
    }

  def _since(
    self, before: dict[str, float], now: dict[str, float]
  ) -> dict[str, float]:
    """What has been added, on all workers together."""
    strategy = getattr(self.model, "distribute_strategy", None)
    return workers.total({k: now[k] - before[k] for k in now}, strategy)


def _ratio(part: float, whole: float) -> float:
  return part / whole if whole else math.nan
