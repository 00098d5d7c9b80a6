"""A training with an echo, a shuffle and backups, that notes every step."""

import os

import keras
import numpy as np
import tensorflow as tf

import tfecho
from tfecho.training import BackupAndRestore

EXAMPLES = 60
BATCH_SIZE = 6
FACTOR = 3
EPOCHS = 6
EVERY_STEPS = 4
STEPS = EPOCHS * FACTOR * EXAMPLES // BATCH_SIZE


def train(directory, log):
  """Trains, or goes on with it, and writes a line for every step.

  Args:
    directory: Path of the folder for backups.
    log: Path of a file. Each line has the number of the step, counted from 0,
      and the examples in its batch; at the end of the training, the weights.
  """
  # Unbuffered: what was written before a kill is in the file.
  descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
  data = _pipeline().dataset(echo_after="decode", factor=FACTOR)
  backup = BackupAndRestore(directory, data=data, every_steps=EVERY_STEPS)
  model = _model(lambda line: os.write(descriptor, line.encode()))
  model.fit(
    backup.data,
    initial_epoch=backup.initial_epoch,
    epochs=EPOCHS,
    callbacks=[backup],
    verbose=0,
    shuffle=False,
  )
  weights = np.concatenate([w.ravel() for w in model.get_weights()])
  os.write(descriptor, f"end {weights.tolist()}\n".encode())


def _pipeline():
  def augment(i, *, seed):
    noise = tf.random.stateless_uniform([1], seed)
    return tf.cast(i, tf.float32)[None] + noise, [0.0]

  return tfecho.Pipeline(
    tf.data.Dataset.range(EXAMPLES),
    decode=tf.identity,
    augment=augment,
    batch_size=BATCH_SIZE,
    shuffle_buffer=EXAMPLES,
    seed=7,
  )


class Noting(keras.Model):
  """Calls `note` with every batch."""

  def train_step(self, data):
    tf.py_function(self.note, [self.optimizer.iterations, data[0]], [])
    return super().train_step(data)


def _model(write):
  def note(step, inputs):
    write(f"{int(step)} {inputs.numpy().ravel().tolist()}\n")

  keras.utils.set_random_seed(1)
  inputs = keras.Input((1,))
  model = Noting(inputs, keras.layers.Dense(1)(inputs))
  model.note = note
  model.compile(keras.optimizers.Adam(0.01), "mse", jit_compile=False)
  return model
