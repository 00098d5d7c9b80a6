"""What the tests of callbacks share: small models, data and clocks."""

import types

import keras
import numpy as np
import pytest
import tensorflow as tf


class Clock:
  """Tells a time that only the test moves."""

  def __init__(self):
    self.now = 0.0

  def __call__(self):
    return self.now


@pytest.fixture
def clock():
  return Clock()


@pytest.fixture
def time_passes(clock):
  """Makes a callback under which batches take time.

  Those of training a second each, those of validation a thousand.
  """

  def advance(seconds):
    clock.now += seconds

  class TimePasses(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
      advance(1)

    def on_test_batch_end(self, batch, logs=None):
      advance(1000)

  return TimePasses()


@pytest.fixture
def model():
  """A model with one weight, made of one layer."""
  return small_model()


def small_model(**compile_options):
  inputs = keras.Input((1,))
  layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
  model = keras.Model(inputs, layer(inputs))
  options = {"optimizer": "sgd", "loss": "mse", **compile_options}
  model.compile(**options)
  return model


@pytest.fixture
def compiled():
  """The model again, with options for `compile`."""
  return small_model


@pytest.fixture
def examples():
  """Makes a dataset of so many examples."""

  def make(count):
    ones = np.ones((count, 1), np.float32)
    return tf.data.Dataset.from_tensor_slices((ones, ones))

  return make


@pytest.fixture
def run_epochs():
  """Runs a callback through epochs whose logs are given, without a model."""

  def run(callback, all_logs, *, steps=10, on_batch=lambda: None):
    stand_in = types.SimpleNamespace(stop_training=False, steps_per_execution=1)
    callback.set_model(stand_in)
    callback.on_train_begin()
    for epoch, logs in enumerate(all_logs):
      callback.on_epoch_begin(epoch)
      for batch in range(steps):
        callback.on_train_batch_begin(batch)
        on_batch()
        callback.on_train_batch_end(batch)
      callback.on_epoch_end(epoch, logs)
      if stand_in.stop_training:
        break
    callback.on_train_end()
    return epoch

  return run
