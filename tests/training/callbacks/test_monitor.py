"""The figures of EchoMonitor, and where they appear."""

import csv
import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from backends import needs_tensorflow

import tfecho
from tfecho.training import EchoMonitor

pytestmark = pytest.mark.usefixtures("native_ops")

FIGURES = [
  "fresh_read",
  "fresh_consumed",
  "copies_per_fresh",
  "wait_share",
  "examples_per_second",
]


@pytest.fixture
def stats():
  return tfecho.Stats()


@pytest.fixture
def data(stats, examples):
  """12 examples, each 3 times, in 9 batches of 4."""
  dataset = examples(12).apply(tfecho.echo(3, stats=stats)).batch(4)
  return dataset.prefetch(2).apply(tfecho.monitor(stats))


def fit(model, data, monitor, **options):
  """The logs of a training, as lists over epochs."""
  callbacks = [monitor, *options.pop("callbacks", [])]
  return model.fit(data, verbose=0, callbacks=callbacks, **options).history


# --- Figures ----------------------------------------------------------------


@pytest.mark.parametrize("steps_per_execution", [1, 3, 4])
@pytest.mark.parametrize("validated", [False, True])
def test_every_epoch_is_counted_exactly(
  compiled,
  data,
  examples,
  stats,
  clock,
  time_passes,
  steps_per_execution,
  validated,
):
  """Also where the last execution is an incomplete one."""
  monitor = EchoMonitor(stats, batch_size=4, clock=clock)
  logs = fit(
    compiled(steps_per_execution=steps_per_execution),
    data,
    monitor,
    callbacks=[time_passes],
    epochs=3,
    validation_data=examples(5).batch(1) if validated else None,
  )
  assert logs["fresh_read"] == [12, 24, 36]
  assert logs["fresh_consumed"] == [12, 24, 36]
  assert logs["copies_per_fresh"] == [3, 3, 3]
  seconds = math.ceil(9 / steps_per_execution)
  assert logs["examples_per_second"] == [36 / seconds] * 3


@needs_tensorflow  # JAX's `fit` reads, and waits, between two epochs.
def test_all_waiting_of_a_training_is_in_the_shares_of_its_epochs(
  model, data, examples, stats, clock, time_passes
):
  monitor = EchoMonitor(stats, batch_size=4, clock=clock)
  validation = examples(5).batch(1)
  callbacks = [time_passes]
  logs = fit(
    model,
    data,
    monitor,
    epochs=3,
    validation_data=validation,
    callbacks=callbacks,
  )
  waited = sum(share * 9 for share in logs["wait_share"])
  assert 0 < waited == pytest.approx(stats.wait_seconds)


def test_epochs_of_an_endless_dataset_are_counted_by_what_was_trained_on(
  model, examples, stats, clock, time_passes
):
  """Not by what was emitted: buffers hold some of that."""
  monitor = EchoMonitor(stats, batch_size=4, clock=clock)
  source = examples(12).repeat().apply(tfecho.echo(3, stats=stats)).batch(4)
  source = source.prefetch(4).apply(tfecho.monitor(stats))
  logs = fit(
    model,
    source,
    monitor,
    epochs=2,
    steps_per_epoch=5,
    callbacks=[time_passes],
  )
  assert logs["examples_per_second"] == [4, 4]
  for epoch, consumed in enumerate(logs["fresh_consumed"], start=1):
    assert consumed >= epoch * 5 * 4 // 3
  assert all(
    read >= consumed
    for read, consumed in zip(logs["fresh_read"], logs["fresh_consumed"])
  )


def test_batches_that_loss_scaling_skips_are_read_all_the_same(
  compiled, stats
):
  inputs = np.ones((12, 1), np.float32)
  inputs[[2, 5]] = np.inf
  dataset = tf.data.Dataset.from_tensor_slices((inputs, inputs))
  dataset = dataset.apply(tfecho.echo(2, stats=stats)).batch(2)
  dataset = dataset.apply(tfecho.monitor(stats))
  optimizer = keras.mixed_precision.LossScaleOptimizer(
    keras.optimizers.SGD(0.1)
  )
  logs = fit(
    compiled(optimizer=optimizer),
    dataset,
    EchoMonitor(stats, batch_size=2),
    epochs=2,
  )
  assert logs["fresh_read"] == logs["fresh_consumed"] == [12, 24]
  assert logs["copies_per_fresh"] == [2, 2]


def test_an_echo_of_batches_counts_their_examples(model, examples, stats):
  dataset = examples(12).batch(4).apply(tfecho.echo(2, stats=stats))
  dataset = dataset.apply(tfecho.monitor(stats))
  monitor = EchoMonitor(stats, batch_size=4, examples_per_element=4)
  logs = fit(model, dataset, monitor)
  assert logs["fresh_read"] == logs["fresh_consumed"] == [12]
  assert logs["copies_per_fresh"] == [2]


def test_a_second_training_starts_from_zero(model, data, stats):
  monitor = EchoMonitor(stats, batch_size=4)
  for _ in range(2):
    assert fit(model, data, monitor)["fresh_read"] == [12]


def test_what_was_not_counted_is_nan(model, examples, stats):
  no_echo = examples(12).batch(4).apply(tfecho.monitor(stats))
  logs = fit(model, no_echo, EchoMonitor(stats, batch_size=4))
  for figure in ("fresh_read", "fresh_consumed", "copies_per_fresh"):
    assert math.isnan(logs[figure][0])
  assert logs["wait_share"][0] >= 0

  stats = tfecho.Stats()
  no_monitor = examples(12).apply(tfecho.echo(3, stats=stats)).batch(4)
  logs = fit(model, no_monitor, EchoMonitor(stats, batch_size=4))
  assert math.isnan(logs["wait_share"][0])
  assert math.isnan(logs["examples_per_second"][0])
  assert logs["fresh_read"] == [12]


def test_stats_that_nothing_counts_in_are_noticed(model, data):
  monitor = EchoMonitor(tfecho.Stats(), batch_size=4)
  with pytest.warns(UserWarning, match="`stats` has counted nothing"):
    fit(model, data, monitor)


# --- Where they appear ------------------------------------------------------


@pytest.mark.parametrize("verbose", [1, 2])
def test_the_progress_bar_shows_them(model, data, stats, capsys, verbose):
  monitor = EchoMonitor(stats, batch_size=4)
  model.fit(data, epochs=2, verbose=verbose, callbacks=[monitor])
  output = capsys.readouterr().out
  assert "fresh_read: 12.0000" in output
  assert "fresh_read: 24.0000" in output
  assert all(f"{figure}: " in output for figure in FIGURES)


def test_the_csv_logger_writes_them(model, data, stats, tmp_path):
  path = tmp_path / "log.csv"
  logger = keras.callbacks.CSVLogger(str(path))
  monitor = EchoMonitor(stats, batch_size=4)
  logs = fit(model, data, monitor, epochs=2, callbacks=[logger])
  with path.open(encoding="utf-8") as file:
    rows = list(csv.DictReader(file))
  assert [float(row["fresh_consumed"]) for row in rows] == [12, 24]
  for figure in FIGURES:
    assert [float(row[figure]) for row in rows] == logs[figure]


# Keras, on versions of NumPy that are newer than it.
@pytest.mark.filterwarnings(
  "ignore:__array__ implementation doesn't accept a copy:DeprecationWarning"
)
def test_tensorboard_shows_them(model, data, stats, tmp_path):
  board = keras.callbacks.TensorBoard(str(tmp_path))
  monitor = EchoMonitor(stats, batch_size=4)
  logs = fit(model, data, monitor, epochs=2, callbacks=[board])
  (path,) = tmp_path.glob("train/events.out.tfevents.*")
  found = scalars(path)
  for figure in FIGURES:
    np.testing.assert_allclose(
      [found[f"epoch_{figure}", epoch] for epoch in range(2)], logs[figure]
    )


def scalars(path):
  """The float scalars in an event file, by name and step."""
  found = {}
  for event in tf.compat.v1.train.summary_iterator(str(path)):
    for value in event.summary.value:
      tensor = tf.make_ndarray(value.tensor)
      if tensor.dtype == np.float32 and tensor.shape == ():
        found[value.tag, event.step] = float(tensor)
  return found


# --- Mistakes ---------------------------------------------------------------


@pytest.mark.parametrize(
  "arguments, message",
  [
    ({"batch_size": 0}, "`batch_size` must be an int of at least 1, got 0"),
    (
      {"batch_size": 4, "examples_per_element": 0},
      "`examples_per_element` must be an int of at least 1, got 0",
    ),
  ],
)
def test_a_bad_argument_is_named(stats, arguments, message):
  with pytest.raises(ValueError, match=message):
    EchoMonitor(stats, **arguments)
  with pytest.raises(ValueError, match="`stats` must be a `tfecho.Stats`"):
    EchoMonitor("stats", batch_size=4)
