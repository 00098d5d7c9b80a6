"""Ways to count in fresh examples what Keras counts in epochs."""

import keras
import pytest
import tensorflow as tf

import tfecho
from tfecho.training import EchoFactorSchedule, FreshEpochs, Timeline
from tfecho.training.callbacks.epochs import EndsEpochs


class Counts(keras.callbacks.Callback):
  """Keeps numbers of fresh examples that a training has used."""

  def __init__(self, stats):
    super().__init__()
    self.stats = stats
    self.seen = []

  def on_train_begin(self, logs=None):
    # JAX's `fit` looks at a batch before, to build what is not built.
    self.before = self.stats.consumed

  def keep(self):
    self.seen.append(self.stats.consumed - self.before)


class FreshAtEnd(Counts):
  """Keeps how many had been used at the end of every epoch."""

  def on_epoch_end(self, epoch, logs=None):
    self.keep()


class Plateau(keras.callbacks.Callback):
  """Makes the loss that others watch stand still."""

  def on_epoch_end(self, epoch, logs=None):
    logs["loss"] = 1.0


class Validations(Counts):
  """Keeps after how many the model was validated."""

  def on_test_begin(self, logs=None):
    self.keep()


def without_buffers(dataset):
  """So that what has left the echo is what the model has trained on."""
  options = tf.data.Options()
  options.experimental_optimization.inject_prefetch = False
  return dataset.with_options(options)


@pytest.fixture
def stats(native_ops):
  return tfecho.Stats()


@pytest.fixture
def endless(examples, stats):
  """Endless batches of 4 examples, each echoed so often."""

  def make(factor):
    data = examples(7).repeat()
    data = data.apply(tfecho.echo(factor, buffer_size=0, stats=stats))
    return without_buffers(data.batch(4))

  return make


# --- A number of steps as an epoch ------------------------------------------


# Keras, on versions of NumPy that are newer than it.
@pytest.mark.filterwarnings(
  "ignore:__array__ implementation doesn't accept a copy:DeprecationWarning"
)
@pytest.mark.parametrize("factor", [1, 2, 4])
def test_early_stopping_and_plateaus_count_fresh_examples(
  model, endless, stats, factor
):
  """20 to an epoch, and patience for 3 of them, whatever the factor is."""
  timeline = Timeline(batch_size=4, factor=factor)
  fresh = FreshAtEnd(stats)
  history = model.fit(
    endless(factor),
    steps_per_epoch=timeline.steps("20sp"),
    epochs=50,
    verbose=0,
    callbacks=[
      fresh,
      Plateau(),
      keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=2),
      keras.callbacks.EarlyStopping("loss", patience=3),
    ],
  )
  # The first epoch is the best one.
  assert fresh.seen == [20, 40, 60, 80]
  (rates,) = (history.history.get(k) for k in history.history if k in RATES)
  assert rates == pytest.approx([0.01, 0.01, 0.01, 0.005])


# What `ReduceLROnPlateau` calls it in Keras 3 and 2.
RATES = ("learning_rate", "lr")


@pytest.mark.parametrize("factor", [1, 2, 4])
def test_validation_freq_counts_fresh_examples(
  model, endless, stats, examples, factor
):
  timeline = Timeline(batch_size=4, factor=factor)
  validations = Validations(stats)
  model.fit(
    endless(factor),
    steps_per_epoch=timeline.steps("20sp"),
    epochs=6,
    validation_data=examples(4).batch(4),
    validation_freq=2,
    verbose=0,
    callbacks=[validations],
  )
  assert validations.seen == [40, 80, 120]


# --- FreshEpochs ------------------------------------------------------------


def fit(model, data, callbacks, **options):
  options = {"steps_per_epoch": 1000, "verbose": 0, **options}
  return model.fit(data, callbacks=callbacks, **options)


@pytest.mark.parametrize("factor", [1, 2, 4])
def test_an_epoch_has_so_many_fresh_examples(model, endless, stats, factor):
  fresh = FreshAtEnd(stats)
  fit(
    model,
    endless(factor),
    [FreshEpochs(stats, fresh_examples=20), fresh],
    epochs=4,
  )
  assert fresh.seen == [20, 40, 60, 80]


def test_it_has_as_many_under_a_factor_that_changes(
  model, endless, stats, examples
):
  factor = tfecho.factor_variable(4)
  fresh, validations = FreshAtEnd(stats), Validations(stats)
  fit(
    model,
    endless(factor),
    [
      EchoFactorSchedule(factor, lambda epoch: 4 - epoch, per="epoch"),
      FreshEpochs(stats, fresh_examples=20),
      fresh,
      Plateau(),
      keras.callbacks.EarlyStopping("loss", patience=3),
      validations,
    ],
    epochs=50,
    validation_data=examples(4).batch(4),
  )
  for seen in (fresh.seen, validations.seen):
    assert len(seen) == 4
    # A batch of 4 can't end in the middle.
    for epoch, consumed in enumerate(seen, start=1):
      assert 20 * epoch <= consumed < 20 * epoch + 4


def test_what_goes_beyond_an_epoch_counts_for_the_next_one(
  model, endless, stats
):
  fresh = FreshAtEnd(stats)
  callbacks = [FreshEpochs(stats, fresh_examples=6), fresh]
  fit(model, endless(1), callbacks, epochs=4)
  assert fresh.seen == [8, 12, 20, 24]


def test_an_echo_of_batches_counts_their_examples(model, examples, stats):
  data = examples(8).repeat().batch(4)
  data = without_buffers(
    data.apply(tfecho.echo(2, buffer_size=0, stats=stats))
  )
  fresh = FreshAtEnd(stats)
  epochs = FreshEpochs(stats, fresh_examples=20, examples_per_element=4)
  fit(model, data, [epochs, fresh], epochs=2)
  assert fresh.seen == [5, 10]


def test_a_second_training_starts_from_zero(model, endless, stats):
  fresh = FreshAtEnd(stats)
  callbacks = [FreshEpochs(stats, fresh_examples=20), fresh]
  for _ in range(2):
    fit(model, endless(2), callbacks, epochs=2)
  assert fresh.seen == [20, 40, 20, 40]


@pytest.mark.parametrize(
  "options, message",
  [
    ({"fresh_examples": 0}, "`fresh_examples` must be an int of at least 1"),
    (
      {"fresh_examples": 8, "examples_per_element": 1.5},
      "`examples_per_element` must be an int of at least 1, got 1.5",
    ),
  ],
)
def test_a_bad_argument_is_named(stats, options, message):
  with pytest.raises(ValueError, match=message):
    FreshEpochs(stats, **options)
  with pytest.raises(ValueError, match="`stats` must be a `tfecho.Stats`"):
    FreshEpochs(None, fresh_examples=8)


# --- Ending an epoch is not ending the training -----------------------------


class AfterTwoBatches(EndsEpochs):
  """Ends every epoch after two batches."""

  def on_train_batch_end(self, batch, logs=None):
    if batch == 1:
      self.end_epoch()


class StopsAt(keras.callbacks.Callback):
  """Stops the training in an epoch: in a batch of it, or at its end."""

  def __init__(self, epoch, batch=None):
    super().__init__()
    self.epoch = epoch
    self.batch = batch
    self.present = None

  def on_epoch_begin(self, epoch, logs=None):
    self.present = epoch

  def on_train_batch_end(self, batch, logs=None):
    if (self.present, batch) == (self.epoch, self.batch):
      self.model.stop_training = True

  def on_epoch_end(self, epoch, logs=None):
    if epoch == self.epoch and self.batch is None:
      self.model.stop_training = True


@pytest.mark.parametrize("batch", [None, 0, 1])
@pytest.mark.parametrize("order", [1, -1])
def test_whoever_wants_to_stop_is_heard(model, examples, batch, order):
  """Before or behind it in the list, in the very same batch, or at the end."""
  callbacks = [AfterTwoBatches(), StopsAt(3, batch)][::order]
  history = model.fit(
    examples(5).batch(1), epochs=9, verbose=0, callbacks=callbacks
  )
  assert history.epoch == [0, 1, 2, 3]


def test_an_epoch_that_was_ended_is_validated(model, examples):
  history = model.fit(
    examples(5).batch(1),
    validation_data=examples(2).batch(1),
    epochs=3,
    verbose=0,
    callbacks=[AfterTwoBatches()],
  )
  assert len(history.history["val_loss"]) == 3
