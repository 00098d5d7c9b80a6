"""Averages of weights, where they are wanted: in validation, and at the end."""

from __future__ import annotations

from typing import Any

import keras

from tfecho.training.optimizers import inner


class AveragedWeights(keras.callbacks.Callback):
  """Validates with the averages that an optimizer keeps, and ends with them.

  Training itself goes on with the weights, exactly: they are put aside and
  back. Keras' `SwapEMAWeights` adds and subtracts instead, and so rounds them
  whenever it validates; it knows no averages of tensorflow-addons.

      model.compile(optimizers.get("moving_average(adamw)"), loss)
      model.fit(dataset, validation_data=..., callbacks=[AveragedWeights()])

  The optimizer is one of `optimizers.get` with `moving_average` or `swa`, or
  one of Keras with `use_ema`, on the TensorFlow or JAX backend. The statistics
  of batch normalization are not averaged: they are those of the last weights.
  """

  def __init__(self) -> None:
    super().__init__()
    self._is_training = False  # `evaluate` takes callbacks, too.

  def on_train_begin(self, logs: Any = None) -> None:
    """Checks that there are averages."""
    if not has_averages(self.model):
      raise ValueError(
        "`AveragedWeights` needs an optimizer with averages, and the TensorFlow"
        f" or JAX backend, got {type(inner(self.model.optimizer)).__name__} and"
        f" {keras.backend.backend()!r}"
      )
    self._is_training = True

  def on_test_begin(self, logs: Any = None) -> None:
    """Puts the weights aside, and the averages in their place."""
    if self._is_training:
      self._aside = [w.numpy() for w in self._weights()]
      self._average()

  def on_test_end(self, logs: Any = None) -> None:
    """Puts the weights back."""
    if self._is_training:
      for weight, value in zip(self._weights(), self._aside):
        weight.assign(value)

  def on_train_end(self, logs: Any = None) -> None:
    """Sets the weights to the averages, as Keras does for its own."""
    self._is_training = False
    self._average()

  def _average(self) -> None:
    optimizer = inner(self.model.optimizer)
    optimizer.finalize_variable_values(self._weights())
    if keras.backend.backend() == "jax":
      # The weights now are the arrays of the averages, and the next step gives
      # its weights away.
      for weight in self._weights():
        weight.assign(keras.ops.copy(weight))

  def _weights(self) -> list[Any]:
    return self.model.trainable_variables


def has_averages(model: keras.Model) -> bool:
  """Whether there are averages that can take the place of the weights."""
  if keras.backend.backend() not in ("tensorflow", "jax"):
    return False
  return bool(getattr(inner(model.optimizer), "use_ema", False))
