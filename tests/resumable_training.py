"""A training that can be interrupted, and tells which batches it sees.

In a process of its own, `main` sends what it sees in every step, waits for an
answer in the midst of that step, and sends its weights at the end.
"""

import os
import pathlib
import signal

import keras
import numpy as np
import tensorflow as tf

import tfecho
from tfecho.training import BackupAndRestore

EPOCHS = 3
STEPS_PER_EPOCH = 10  # 20 examples, twice, in batches of 4
EVERY_STEPS = 3

MOMENTS = ("half of it is written", "it has no name yet", "it has a name")


class Telling(keras.Model):
  """A model that calls `tell` with every batch that it trains on."""

  tell = None

  def train_step(self, data):
    tf.py_function(lambda x: self.tell(x.numpy()), [data[0]], [])
    return super().train_step(data)


def make_model(tell, **compile_options):
  """All kinds of state: Adam's, moving averages, randomness."""
  same = {"kernel_initializer": keras.initializers.GlorotUniform(seed=1)}
  inputs = keras.Input((2,))
  outputs = keras.layers.Dense(8, activation="tanh", **same)(inputs)
  if hasattr(keras, "ops"):  # Keras 2 can't save the state of this one.
    outputs = keras.layers.Dropout(0.5, seed=3)(outputs)
  outputs = keras.layers.BatchNormalization()(outputs)
  model = Telling(inputs, keras.layers.Dense(1, **same)(outputs))
  model.tell = tell
  options = {"loss": "mse", "jit_compile": False, **compile_options}
  model.compile(keras.optimizers.Adam(0.01), **options)
  return model


def make_pipeline():
  """A pipeline that shuffles and draws random numbers, with a seed."""

  def augment(x, *, seed):
    noise = tf.random.stateless_uniform([2], seed)
    return tf.fill([2], tf.cast(x, tf.float32)) + noise, tf.ones([1])

  return tfecho.Pipeline(
    tf.data.Dataset.range(20),
    decode=lambda x: 10 * x,
    augment=augment,
    batch_size=4,
    shuffle_buffer=20,
    seed=5,
  )


def make_data(implementation):
  """Echoed data, and what `fit` must be told about it.

  Once over the data in an epoch with the native operations; without an end with
  the graph ones, where a shuffle follows another.
  """
  echo = {"echo_after": "decode", "factor": 2, "implementation": implementation}
  if implementation == "native":
    return make_pipeline().dataset(**echo), {}
  data = make_pipeline().dataset(**echo, repeat=True)
  return data, {"steps_per_epoch": STEPS_PER_EPOCH}


def train(model, backup, *, callbacks=(), **fit_options):
  """Starts a training of some epochs, or goes on with it."""
  return model.fit(
    backup.data,
    initial_epoch=backup.initial_epoch,
    epochs=EPOCHS,
    verbose=0,
    callbacks=[*callbacks, backup],
    **fit_options,
  )


def flat_weights(model):
  """All weights of a model in one list."""
  return np.concatenate([w.ravel() for w in model.get_weights()]).tolist()


def die_at(moment, *, backup):
  """Arranges for a death in that backup: no `finally`, no flushing, nothing."""
  write, rename = tf.train.Checkpoint.write, pathlib.Path.rename
  written = []

  def die_if(now):
    if now == moment and len(written) > backup:
      os.kill(os.getpid(), signal.SIGKILL)

  def write_and_die(checkpoint, path, *args, **kwargs):
    written.append(path)
    pathlib.Path(f"{path}.data-00000-of-00001").write_bytes(b"half of i")
    die_if("half of it is written")
    return write(checkpoint, path, *args, **kwargs)

  def rename_and_die(path, target):
    die_if("it has no name yet")
    renamed = rename(path, target)
    die_if("it has a name")
    return renamed

  tf.train.Checkpoint.write = write_and_die
  pathlib.Path.rename = rename_and_die


def main(connection, directory, implementation, moment=None):
  """Trains under somebody's eyes; at `moment` of its fourth backup it dies."""

  def tell(batch):
    connection.send(batch.tolist())
    connection.recv()

  if moment:
    die_at(moment, backup=3)
  data, fit_options = make_data(implementation)
  backup = BackupAndRestore(directory, data=data, every_steps=EVERY_STEPS)
  model = make_model(tell)
  train(model, backup, **fit_options)
  connection.send(flat_weights(model))
