"""Epochs that end when somebody else says so than Keras."""

from __future__ import annotations

from typing import Any

import keras

from tfecho.checks import checked_int
from tfecho.stats import Stats, check_stats
from tfecho.training import workers

# What ends an epoch, but not the training: `fit` takes it for true, and nobody
# else's wish to stop can be mistaken for it.
_END_OF_EPOCH = "end of the epoch"


class EndsEpochs(keras.callbacks.Callback):
  """A callback that can end an epoch without ending the training."""

  def end_epoch(self) -> None:
    """Makes the present batch the last one of its epoch."""
    if not self.model.stop_training:
      self.model.stop_training = _END_OF_EPOCH

  def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
    """Lets the training go on, if nobody else wants it to stop."""
    if self.model.stop_training is _END_OF_EPOCH:
      self.model.stop_training = False


class FreshEpochs(EndsEpochs):
  """Makes an epoch of so many fresh examples, whatever the factor is by then.

  Then whatever counts epochs counts fresh examples: early stopping, plateaus,
  validation, checkpoints.

      model.fit(
        endless_dataset,
        steps_per_epoch=10_000,   # more than an epoch will ever take
        callbacks=[
          FreshEpochs(stats, fresh_examples=100_000),
          keras.callbacks.EarlyStopping(patience=5),    # 500,000
        ],
      )

  An epoch ends with the batch after which its fresh examples have left the
  echo. Those that wait in buffers between the echo and the model are counted,
  so its steps depend on how full these are. Where a factor is constant, count
  by a `Timeline`: that is the same in every run. Several workers are added up,
  after every step.
  """

  def __init__(
    self, stats: Stats, *, fresh_examples: int, examples_per_element: int = 1
  ):
    """Counts by `stats`.

    Args:
      stats: what counts at the echo.
      fresh_examples: how many make an epoch.
      examples_per_element: those in an element that passes the echo, which is
        the batch size where the echo stands behind the batch.

    Raises:
      ValueError: if an argument is not as described.
    """
    super().__init__()
    check_stats(stats)
    self._stats = stats
    self._fresh_examples = checked_int(
      "fresh_examples", fresh_examples, at_least=1
    )
    self._examples_per_element = checked_int(
      "examples_per_element", examples_per_element, at_least=1
    )
    self._goal = 0

  def on_train_begin(self, logs: Any = None) -> None:
    """Starts to count."""
    # Asked for only once: the JAX backend writes its state back whenever a
    # callback asks for the model.
    self._strategy = getattr(self.model, "distribute_strategy", None)
    self._goal = self._consumed()

  def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
    """Sets the goal of this epoch; what went beyond the last one counts."""
    self._goal += self._fresh_examples

  def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
    """Ends the epoch at its goal."""
    if self._consumed() >= self._goal:
      self.end_epoch()

  def _consumed(self) -> int:
    here = {"consumed": self._stats.consumed}
    counts = workers.total(here, self._strategy)
    return round(counts["consumed"]) * self._examples_per_element
