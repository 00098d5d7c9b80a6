"""Puts an augmentation into the training step of a Keras model."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tfecho.checks import checked_int
from tfecho.training.augmentation import draws
from tfecho.training.augmentation.augmenting import Augmentation
from tfecho.training.optimizers import micro_steps


def in_train_step(
  model: keras.Model, augment: Augmentation, *, seed: int = 0
) -> keras.Model:
  """Makes `fit` and `train_on_batch` of a model augment their batches.

  On the device that trains. Evaluating and predicting stay as they are, and so
  does what is saved: the model itself has nothing added to it. Call it before
  the model trains; compiling it anew changes nothing.

  What is drawn follows from `seed` and the number of the step, which the
  optimizer counts. So a training that is resumed draws what it would have, and
  each replica draws for itself.

  ```python
  import keras
  from tfecho.training import augmentation

  model = keras.Sequential([
    keras.Input((8, 8, 3)),
    keras.layers.Flatten(),
    keras.layers.Dense(2),
  ])
  augment = augmentation.get("trivial", side="device")
  augmentation.in_train_step(model, augment, seed=1)
  model.compile(optimizer="sgd", loss="mse")
  model.train_on_batch(tf.zeros([4, 8, 8, 3]), tf.zeros([4, 2]))
  ```

  Args:
    model: from images to anything, for the TensorFlow backend.
    augment: for the device, as `augmentation.get` makes it.
    seed: makes it reproducible.

  Returns:
    The same model. On an accelerator it is not compiled by XLA, which lacks
    what moves pixels.

  Raises:
    ValueError: if an argument is not as described.
  """
  _check(model, augment)
  seed = checked_int("seed", seed, at_least=0)
  train_step = model.train_step

  def augmented_step(data: Any) -> Any:
    examples = data if isinstance(data, (tuple, list)) else (data,)
    drawn = _seed(seed, model.optimizer)
    return train_step(augment(*examples, seed=drawn))

  model.train_step = augmented_step
  model.supports_jit = False  # where Keras decides by itself
  return model


def _check(model: Any, augment: Any) -> None:
  if not isinstance(model, keras.Model):
    raise ValueError(
      f"`model` must be a keras.Model, got {type(model).__name__}"
    )
  if getattr(augment, "side", None) != "device":
    raise ValueError(
      "`augment` must come from `augmentation.get(..., side=\"device\")`, got"
      f" {getattr(augment, '__name__', augment)!r}: what runs on the host"
      " belongs into `tfecho.Pipeline(augment=...)`"
    )


def _seed(seed: int, optimizer: keras.optimizers.Optimizer) -> tf.Tensor:
  """What this step, on this replica, draws from."""
  step = tf.cast(tf.convert_to_tensor(micro_steps(optimizer)), tf.int64)
  replica = tf.distribute.get_replica_context().replica_id_in_sync_group
  drawn = draws.fold_in(tf.constant([seed, 0], tf.int64), step)
  return draws.fold_in(drawn, replica)
