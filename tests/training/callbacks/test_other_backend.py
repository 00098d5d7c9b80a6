"""With another backend than TensorFlow: what is refused, what steps cost."""

import keras
import numpy as np
import pytest
from backends import needs_jax

import tfecho
from tfecho.training import callbacks
from tfecho.training.callbacks.course import Course

# --- What is refused --------------------------------------------------------


def test_backups_are_refused_with_what_keras_has(
  monkeypatch, tmp_path, examples
):
  monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
  said = "'jax', `fit` reads ahead.*`keras.callbacks.BackupAndRestore` restores"
  with pytest.raises(ValueError, match=said):
    callbacks.BackupAndRestore(tmp_path, data=examples(4).batch(2))


def test_averages_are_refused_before_the_first_step(
  monkeypatch, compiled, examples
):
  model = compiled(optimizer=keras.optimizers.Adam(use_ema=True))
  before = model.get_weights()
  monkeypatch.setattr(keras.backend, "backend", lambda: "torch")
  averaged = callbacks.AveragedWeights()
  with pytest.raises(ValueError, match="TensorFlow or JAX.* got Adam and 'tor"):
    model.fit(examples(4).batch(2), verbose=0, callbacks=[averaged])
  np.testing.assert_array_equal(model.get_weights(), before)


# --- What JAX's `fit` keeps to itself ---------------------------------------


class Counting(keras.Model):
  """Counts how often a callback asks for its state, which is then written."""

  asked = 0

  def jax_state_sync(self):
    self.asked += 1
    super().jax_state_sync()


MAKE = {
  "AveragedWeights": lambda stats: callbacks.AveragedWeights(),
  "Course": lambda stats: Course(
    total_steps=100, first_step=0, fresh_examples=lambda steps: steps
  ),
  "EchoFactorSchedule": lambda stats: callbacks.EchoFactorSchedule(
    tfecho.factor_variable(2), lambda step: 1 + step
  ),
  "EchoMonitor": lambda stats: callbacks.EchoMonitor(stats, batch_size=2),
  "FreshEpochs": lambda stats: callbacks.FreshEpochs(
    stats, fresh_examples=100
  ),
  "StopAtTarget": lambda stats: callbacks.StopAtTarget("val_loss", 0.0),
}


@needs_jax
@pytest.mark.parametrize("name", MAKE)
def test_no_callback_asks_for_the_state_at_every_step(
  native_ops, examples, name
):
  def asked(steps):
    inputs = keras.Input((1,))
    model = Counting(inputs, keras.layers.Dense(1)(inputs))
    model.compile(keras.optimizers.SGD(use_ema=True), "mse")
    stats = tfecho.Stats()
    data = examples(2 * steps).apply(tfecho.echo(1, stats=stats)).batch(2)
    model.fit(
      data,
      validation_data=examples(2).batch(2),
      epochs=2,
      verbose=0,
      callbacks=[MAKE[name](stats)],
    )
    return model.asked

  assert asked(steps=9) == asked(steps=3)
