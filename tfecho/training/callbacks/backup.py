"""Training that goes on where it was, with the data that comes next.

    backup = BackupAndRestore("backup", data=dataset, every_steps=1_000)
    model.fit(
      backup.data,
      initial_epoch=backup.initial_epoch,
      epochs=90,
      callbacks=[..., backup],
    )

Killed at any time and started again, the same lines go on from the last backup.
The model, the optimizer and the position in the data are those of a training
that was not interrupted.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from tfecho.checks import checked_int
from tfecho.training import optimizers
from tfecho.training.callbacks.backup_folder import BackupFolder, Position
from tfecho.training.callbacks.continued_dataset import ContinuedDataset
from tfecho.training.callbacks.epochs import EndsEpochs
from tfecho.training.layers import whole_number


class BackupAndRestore(EndsEpochs):
  """Backs up model, optimizer and the position in the input.

  Keras' own callback of this name restores the weights, and starts the data
  anew: what comes early in the data is then seen too often. Here, the batches
  seen before an interruption and after it are together exactly those of a
  training without one.

  A backup is made before the first step, at the end of every epoch, and every
  so many steps. It is written to a folder of its own, which is then renamed:
  whenever the process dies, there is a complete one. Backups are removed when
  the training ends.

  What it takes:

  *   The TensorFlow backend and one replica. A `MirroredStrategy` draws from
      iterators of its own, and JAX's `fit` reads ahead of what it trains on:
      their positions can't be saved, and both are refused.
  *   A pipeline that can be saved, with seeds where it shuffles. Random numbers
      must come from stateless operations, as for `Pipeline`. What TensorFlow
      can't restore exactly is refused: a shuffle or random numbers upstream of
      another shuffle, of a `repeat`, a `concatenate` or a `cache`, except for
      an endless `repeat` right behind a shuffle. That leaves every pipeline of
      `Pipeline`, if the native ops are there or it is told `repeat=True`.
  *   Epochs of a known number of steps: finite data of known cardinality, or
      endless data and `steps_per_epoch`, not both. `steps_per_execution`
      divides that number.

  The logs of an epoch that was interrupted cover its steps since the backup.
  Other callbacks start anew. The random state of `Dropout` and the like is
  saved with Keras 3, and can't be with Keras 2.

  List it last: what other callbacks do at the end of an epoch, as to the
  learning rate, is then part of the backup.

  Attributes:
    data: `data`, to be given to `fit`. Iterating goes on where it was.
    initial_epoch: epoch to go on with, to be given to `fit`. 0 if there is no
      backup.
  """

  def __init__(
    self,
    directory: str | os.PathLike,
    *,
    data: tf.data.Dataset,
    every_steps: int | None = None,
    variables: Mapping[str, tf.Variable] | None = None,
  ):
    """Looks for a backup; it is restored when training begins.

    Args:
      directory: where backups are, and nothing else. On a file system where a
        folder is renamed at once.
      data: batches to train on, with all stages, the `monitor` of an
        `EchoMonitor` among them: `fit` takes `backup.data` as it is.
      every_steps: steps between two backups, beside those at the end of every
        epoch.
      variables: what else to save, by name: the factor of an echo, if that is
        a variable.

    Raises:
      ValueError: if an argument is not as described, or the backend of Keras is
        not TensorFlow.
    """
    super().__init__()
    backend = keras.backend.backend()
    if backend != "tensorflow":
      raise ValueError(
        "`BackupAndRestore` needs the TensorFlow backend: with the backend"
        f" {backend!r}, `fit` reads ahead of what it trains on, and the"
        " position in the data is not that of the training;"
        " `keras.callbacks.BackupAndRestore` restores the model, and starts the"
        " data anew"
      )
    if not isinstance(data, tf.data.Dataset):
      raise ValueError(
        f"`data` must be a `tf.data.Dataset`, got {type(data).__name__}"
      )
    if every_steps is not None:
      every_steps = checked_int("every_steps", every_steps, at_least=1)
    self.data = ContinuedDataset(data)
    self._backups = BackupFolder(pathlib.Path(directory))
    self._every_steps = every_steps
    self._variables = dict(variables or {})
    self._position = self._backups.position() or Position()
    self._restored = self._has_backup = False
    self._steps_since_backup = 0

  @property
  def initial_epoch(self) -> int:
    """Epoch to go on with."""
    return self._position.epoch

  @property
  def initial_step(self) -> int:
    """How many steps of that epoch have been made."""
    return self._position.step

  def on_train_begin(self, logs: Any = None) -> None:
    """Restores the last backup."""
    self._check_training()
    optimizers.build(self.model.optimizer, self.model.trainable_variables)
    self.data.is_used = False
    position = self._backups.position()
    self._restored = self._has_backup = position is not None
    if position is not None:
      self.data.skip_to_pass(position.data_pass)
      self._backups.restore(self._state())
    self._position = position or Position()

  def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
    """Checks that `fit` goes on with the epoch of the backup."""
    if self._restored and epoch != self._position.epoch:
      raise ValueError(
        f"the backup is from epoch {self._position.epoch}, and `fit` starts"
        f" with epoch {epoch}: give it `initial_epoch=backup.initial_epoch`"
      )
    self._first_step = self._position.step if self._restored else 0
    self._restored = False
    self._position = Position(epoch, self._first_step)

  def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
    """Checks that `fit` uses the data that is saved; makes the first backup.

    Not before it is known that this is a training that can be resumed.
    """
    self._step_at_end = self._first_step + batch + self._steps_per_execution
    if not self.data.is_used:
      raise ValueError(
        "`fit` must train on `backup.data` itself. Put stages behind it, such"
        " as `tfecho.monitor`, into what it is made of, as in"
        " `BackupAndRestore(..., data=train.apply(tfecho.monitor(stats)))`. Nor"
        " can it be used with `class_weight`, which makes another dataset of"
        " it, or with `steps_per_epoch` if the data has an end"
      )
    if not self._has_backup:
      self._save()

  def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
    """Makes a backup when it is time to, and ends an epoch that was resumed."""
    # Not by `batch`: of an execution the last step, in Keras 3.10 the first.
    step = self._step_at_end
    self._steps_since_backup += step - self._position.step
    self._position = Position(self._position.epoch, step)
    if step >= self._steps_per_epoch:
      self.data.begin_pass()
      if self._first_step > 0:
        self.end_epoch()
    elif self._every_steps and self._steps_since_backup >= self._every_steps:
      self._save()

  def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
    """Makes a backup."""
    super().on_epoch_end(epoch, logs)
    if self._position.step < self._steps_per_epoch:
      self.data.begin_pass()  # Somebody else has ended the epoch.
    self._position = Position(epoch + 1)
    self._save()

  def on_train_end(self, logs: Any = None) -> None:
    """Removes the backups, since there is nothing left to go on with."""
    self._backups.clear()
    self._position = Position()

  def _save(self) -> None:
    position = dataclasses.replace(self._position, data_pass=self.data.passes)
    self._backups.write(self._state(), position)
    self._has_backup = True
    self._steps_since_backup = 0

  def _state(self) -> tf.train.Checkpoint:
    return tf.train.Checkpoint(
      model=self.model,
      optimizer=self.model.optimizer,
      data=self.data.iterator,
      random=_random_state(self.model),
      **self._variables,
    )

  def _check_training(self) -> None:
    with self.model.distribute_strategy.scope():
      if tf.distribute.has_strategy():
        raise ValueError(
          "`BackupAndRestore` needs a model without a distribution strategy:"
          " replicas draw from iterators whose position can't be saved"
        )
    if not self.model.built:
      raise ValueError("the model must be built before `fit` can resume it")
    self._steps_per_epoch = self.params["steps"]
    self.data.check_epochs(self._steps_per_epoch)
    per_execution = whole_number(self.model.steps_per_execution)
    if self._steps_per_epoch % per_execution:
      raise ValueError(
        f"`steps_per_execution`={per_execution} must divide the steps of an"
        f" epoch, which are {self._steps_per_epoch}"
      )
    self._steps_per_execution = per_execution


def _random_state(model: keras.Model) -> list[tf.Variable]:
  """The seeds of random layers, which TensorFlow does not find by itself."""
  if not hasattr(keras, "ops"):  # Keras 2
    return []
  return [variable.value for variable in model.non_trainable_variables]
