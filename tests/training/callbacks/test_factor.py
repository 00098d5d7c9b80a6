"""A factor that changes during training, as its schedule says."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfecho
from tfecho.training import EchoFactorSchedule, schedules


class Watch(keras.callbacks.Callback):
  """Keeps the factor of every batch."""

  def __init__(self, factor):
    super().__init__()
    self.factor = factor
    self.seen = []

  def on_train_batch_end(self, batch, logs=None):
    self.seen.append(float(self.factor))


@pytest.fixture
def factor():
  return tfecho.factor_variable(4)


@pytest.fixture
def fit(examples, factor):
  """Trains, and returns the factor of every batch and the logs."""

  def run(model, schedule, *, per="step", steps=5, **options):
    watch = Watch(factor)
    history = model.fit(
      examples(steps).batch(1),
      verbose=0,
      callbacks=[EchoFactorSchedule(factor, schedule, per=per), watch],
      **options,
    )
    return watch.seen, history.history

  return run


def test_per_step_it_changes_at_every_step(model, fit):
  seen, logs = fit(model, lambda step: 10 - step, epochs=2)
  assert seen == [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]
  assert logs["echo_factor"] == [6, 1]


def test_per_epoch_it_changes_at_every_epoch(model, fit):
  seen, logs = fit(model, lambda epoch: 4 / (1 + epoch), per="epoch", epochs=3)
  assert seen == pytest.approx([4] * 5 + [2] * 5 + [4 / 3] * 5)
  assert logs["echo_factor"] == pytest.approx([4, 2, 4 / 3])


def test_a_schedule_of_learning_rates_does_for_factors(model, fit):
  schedule = schedules.linear(4, "10ba", end=1)
  seen, _ = fit(model, schedule, epochs=3)
  falling = [4 - 0.3 * step for step in range(10)]
  assert seen == pytest.approx(falling + [1] * 5)


def test_with_steps_per_execution_it_changes_once_per_execution(compiled, fit):
  seen, _ = fit(
    compiled(steps_per_execution=2), lambda step: 10 - step, steps=4, epochs=2
  )
  assert seen == [10, 8, 6, 4]


@pytest.mark.skipif(
  not hasattr(keras, "ops"), reason="Keras 2 does not accumulate gradients"
)
@pytest.mark.parametrize("group", [2, 5, 7])
@pytest.mark.parametrize("scaled", [False, True])
def test_every_batch_is_a_step_where_gradients_are_accumulated(
  compiled, fit, group, scaled
):
  """Also where an epoch, of 5 steps, ends in the midst of a group."""
  optimizer = keras.optimizers.SGD(0.1, gradient_accumulation_steps=group)
  if scaled:
    optimizer = keras.mixed_precision.LossScaleOptimizer(optimizer)
  model = compiled(optimizer=optimizer)
  seen, _ = fit(model, lambda step: 15 - step, epochs=3)
  assert seen == list(range(15, 0, -1))


def test_with_loss_scaling_it_counts_the_same_steps(compiled, fit):
  inner = keras.optimizers.SGD(0.1)
  optimizer = keras.mixed_precision.LossScaleOptimizer(inner)
  seen, _ = fit(compiled(optimizer=optimizer), lambda step: 10 - step, epochs=2)
  assert seen == [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]


def test_another_fit_of_the_model_goes_on(model, fit):
  """As the learning rate does."""
  fit(model, lambda step: 10 - step)
  seen, _ = fit(model, lambda step: 10 - step)
  assert seen == [5, 4, 3, 2, 1]


def test_the_echo_follows(compiled, factor, implementation):
  """Without buffers, from the next fresh example on."""
  batches = np.arange(9, dtype=np.float32).reshape(9, 1, 1)
  dataset = tf.data.Dataset.from_tensor_slices((batches, batches)).apply(
    tfecho.echo(factor, buffer_size=0, implementation=implementation)
  )
  options = tf.data.Options()
  options.experimental_optimization.inject_prefetch = False
  dataset = dataset.with_options(options)
  # The weight falls by the example that the model trains on.
  optimizer = keras.optimizers.SGD(1.0)
  model = compiled(optimizer=optimizer, loss=lambda targets, outputs: outputs)
  weights = [0.0]
  keep = keras.callbacks.LambdaCallback(
    on_train_batch_end=lambda batch, logs: weights.append(
      float(keep.model.get_weights()[0][0, 0])
    )
  )
  factors = [4, 4, 4, 4, 3, 3, 3, 2, 2, 1]
  callbacks = [EchoFactorSchedule(factor, factors.__getitem__), keep]
  model.fit(dataset, steps_per_epoch=10, verbose=0, callbacks=callbacks)
  trained_on = [
    before - after for before, after in zip(weights, weights[1:])
  ]
  assert trained_on == [0, 0, 0, 0, 1, 1, 1, 2, 2, 3]


# --- Mistakes ---------------------------------------------------------------


@pytest.mark.parametrize("value", [0.5, 0, -1, float("nan"), float("inf")])
def test_what_is_no_factor_is_refused_with_its_step(model, fit, value):
  with pytest.raises(ValueError, match=f"got {float(value)} for step 3"):
    fit(model, lambda step: value if step == 3 else 2)


def test_a_fraction_is_no_factor_for_an_integer(model, examples):
  factor = tfecho.factor_variable(4, dtype=tf.int64)
  schedule = EchoFactorSchedule(factor, lambda step: 4 - step / 2)
  with pytest.raises(ValueError, match="whole ones .* got 3.5 for step 1"):
    model.fit(examples(4).batch(1), verbose=0, callbacks=[schedule])


@pytest.mark.parametrize(
  "factor, options, message",
  [
    (2, {}, "`factor` must be a `tf.Variable`.* got 2"),
    ("variable", {"per": "batch"}, "`per` must be 'step' or 'epoch'.*'batch'"),
  ],
)
def test_a_bad_argument_is_named(factor, options, message):
  if factor == "variable":
    factor = tfecho.factor_variable(2)
  with pytest.raises(ValueError, match=message):
    EchoFactorSchedule(factor, lambda step: 1, **options)
