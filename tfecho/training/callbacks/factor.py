"""An echoing factor that changes during training."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from tfecho.factors import Factor
from tfecho.training.layers import whole_number
from tfecho.training.optimizers import micro_steps


class EchoFactorSchedule(keras.callbacks.Callback):
  """Changes the echoing factor during training.

  A factor that falls suits the theory: repeats help while curvature limits the
  progress, early in training, and not once the noise of gradients does.

      factor = tfecho.factor_variable(4)
      falling = schedules.linear(4, "90ep", end=1).on(timeline)
      model.fit(
        pipeline.dataset(echo_after="decode", factor=factor),
        steps_per_epoch=steps_per_epoch,
        callbacks=[EchoFactorSchedule(factor, falling)],
      )

  The echo reads the factor at every fresh element; the model sees the change
  when it gets to the elements that are buffered by then. The logs of an epoch
  get the last factor as `echo_factor`.

  Steps count as they do for the learning rate, so that both go on where they
  were when a training is resumed. With `steps_per_execution`, the factor
  changes once per execution.

  Source: Agarwal, Anil, Koren, Talwar, Zhang, "Stochastic Optimization with
  Laggard Data Pipelines", arXiv 2010.13639.
  """

  def __init__(
    self,
    factor: tf.Variable,
    schedule: Callable[[int], Any],
    *,
    per: str = "step",
  ):
    """Assigns what `schedule` says to `factor`.

    Args:
      factor: what was given to `echo`, made by `tfecho.factor_variable`.
      schedule: gives the factor for a step or an epoch, counted from 0: one of
        `schedules`, or a function.
      per: "step" or "epoch".

    Raises:
      ValueError: if an argument is not as described. During training, if the
        schedule gives what is no factor.
    """
    super().__init__()
    if Factor.parse(factor, rounding="even", seed=None).variable is None:
      raise ValueError(
        f"`factor` must be a `tf.Variable`, as it was given to `echo`, got"
        f" {factor!r}"
      )
    if per not in ("step", "epoch"):
      raise ValueError(f"`per` must be 'step' or 'epoch', got {per!r}")
    self._factor = factor
    self._schedule = schedule
    self._per = per
    self._value: float | None = None
    self._first_step = 0

  def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
    """Changes the factor, if it does so per epoch."""
    if self._per == "epoch":
      self._assign(epoch)
    else:
      self._first_step = whole_number(micro_steps(self.model.optimizer))

  def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
    """Changes the factor, if it does so per step."""
    if self._per == "step":
      self._assign(self._first_step + batch)

  def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
    """Adds the factor to the logs."""
    if logs is not None:
      logs["echo_factor"] = self._value

  def _assign(self, count: int) -> None:
    value = float(self._schedule(count))
    if value == self._value:
      return
    whole = value.is_integer() or not self._factor.dtype.is_integer
    if not 1 <= value < math.inf or not whole:
      raise ValueError(
        "`schedule` must give factors of at least 1, and whole ones for a"
        f" variable of an integer type, got {value} for {self._per} {count}"
      )
    self._factor.assign(tf.cast(value, self._factor.dtype))
    self._value = value
