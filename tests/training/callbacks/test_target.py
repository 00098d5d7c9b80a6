"""When a target counts as reached, and what is said about it."""

import pytest

import tfecho
from tfecho.training import EchoMonitor, StopAtTarget


def accuracies(*values):
  return [{"val_accuracy": value} for value in values]


@pytest.mark.parametrize(
  "values, options, stopped, reached",
  [
    ([0.5, 0.8, 0.9, 0.9], {}, 2, 2),
    ([0.5, 0.9, 0.9, 0.9], {}, 1, 1),  # as soon as it is reached
    ([0.5, 0.6, 0.7, 0.8], {}, 3, None),
    # It has to stay reached.
    ([0.9, 0.8, 0.9, 0.9, 0.9], {"patience": 1}, 3, 2),
    ([0.9, 0.95, 0.9, 0.8, 0.9], {"patience": 2}, 2, 0),
    ([0.9, 0.9, 0.8, 0.9, 0.9], {"patience": 2}, 4, None),
    # The mean has to reach it.
    ([1.0, 0.8, 0.89, 1.0], {"mean_of": 3}, 3, None),
    ([1.0, 0.8, 0.9, 1.0], {"mean_of": 3}, 2, 2),
    ([1.0, 1.0, 1.0, 1.0], {"mean_of": 3}, 2, 2),  # not before there are 3
    ([0.9, 0.9, 0.9, 0.9], {"mean_of": 3}, 2, 2),  # whatever 0.9 is in binary
    ([0.8, 1.0, 0.8, 1.0, 0.9], {"mean_of": 2, "patience": 2}, 3, 1),
  ],
)
def test_a_target_is_reached(run_epochs, values, options, stopped, reached):
  stop = StopAtTarget("val_accuracy", 0.9, **options)
  assert run_epochs(stop, accuracies(*values)) == stopped
  assert (stop.reached and stop.reached["epoch"]) == reached


@pytest.mark.parametrize(
  "metric, mode",
  [("val_loss", None), ("loss", None), ("perplexity", "min")],
)
def test_less_may_be_better(run_epochs, metric, mode):
  stop = StopAtTarget(metric, 3.9, mode=mode)
  all_logs = [{metric: 4.5}, {metric: 4.0}, {metric: 3.9}, {metric: 3.0}]
  assert run_epochs(stop, all_logs) == 2


def test_it_says_what_the_target_took(run_epochs, clock):
  stop = StopAtTarget("val_accuracy", 0.9, clock=clock)

  def a_step_takes_two_seconds():
    clock.now += 2

  all_logs = [
    {"val_accuracy": 0.5, "fresh_read": 100, "fresh_consumed": 90},
    {"val_accuracy": 0.9, "fresh_read": 200, "fresh_consumed": 190},
  ]
  run_epochs(stop, all_logs, steps=5, on_batch=a_step_takes_two_seconds)
  assert stop.reached == {
    "epoch": 1,
    "steps": 10,
    "seconds": 20.0,
    "val_accuracy": 0.9,
    "fresh_read": 200,
    "fresh_consumed": 190,
  }


def test_epochs_without_validation_do_not_count(run_epochs):
  """As with `validation_freq`."""
  stop = StopAtTarget("val_accuracy", 0.9, mean_of=2)
  all_logs = [
    {"loss": 1.0},
    {"loss": 0.9, "val_accuracy": 0.9},
    {"loss": 0.8},
    {"loss": 0.7, "val_accuracy": 0.9},
  ]
  assert run_epochs(stop, all_logs) == 3
  assert stop.reached["epoch"] == 3


@pytest.mark.parametrize(
  "metric, logs",
  [
    ("val_acuracy", {"loss": 1.0, "val_accuracy": 0.5}),
    ("acuracy", {"loss": 1.0, "accuracy": 0.5}),
  ],
)
def test_a_metric_that_does_not_exist_is_an_error(run_epochs, metric, logs):
  stop = StopAtTarget(metric, 0.9, mode="max")
  with pytest.raises(ValueError, match=f"`metric` must be one of .*'{metric}'"):
    run_epochs(stop, [logs])


def test_a_training_without_validation_is_warned_about(run_epochs):
  stop = StopAtTarget("val_accuracy", 0.9)
  message = r"never saw the metric 'val_accuracy', only \['loss'\]"
  with pytest.warns(UserWarning, match=message):
    run_epochs(stop, [{"loss": 1.0}])


def test_another_training_starts_anew(run_epochs):
  stop = StopAtTarget("val_accuracy", 0.9, mean_of=2)
  run_epochs(stop, accuracies(0.9, 0.9))
  assert stop.reached is not None
  assert run_epochs(stop, accuracies(0.9, 0.8)) == 1
  assert stop.reached is None


@pytest.mark.parametrize(
  "options, message",
  [
    (
      {"metric": "val_acuracy"},
      "`mode` must be given for the metric 'val_acuracy', whose name ends",
    ),
    ({"mode": "auto"}, "`mode` must be 'max', 'min' or None, got 'auto'"),
    ({"value": "0.5"}, "`value` must be a finite number, got '0.5'"),
    ({"value": float("nan")}, "`value` must be a finite number, got nan"),
    ({"patience": -1}, "`patience` must be an int of at least 0, got -1"),
    ({"mean_of": 0}, "`mean_of` must be an int of at least 1, got 0"),
  ],
)
def test_a_bad_argument_is_named(options, message):
  arguments = {"metric": "accuracy", "value": 0.9, **options}
  with pytest.raises(ValueError, match=message):
    StopAtTarget(**arguments)


# --- In Keras ---------------------------------------------------------------


@pytest.mark.parametrize("steps_per_execution", [1, 3])
def test_fit_stops_and_validation_takes_no_time(
  compiled, examples, clock, time_passes, steps_per_execution
):
  model = compiled(steps_per_execution=steps_per_execution)
  stop = StopAtTarget("val_loss", 0.5, clock=clock)
  history = model.fit(
    examples(12).batch(2),
    validation_data=examples(4).batch(2),
    epochs=50,
    verbose=0,
    callbacks=[stop, time_passes],
  ).history
  losses = history["val_loss"]
  assert 1 < len(losses) < 50
  assert losses[-1] <= 0.5 < losses[-2]
  assert stop.reached["val_loss"] == losses[-1]
  assert stop.reached["epoch"] == len(losses) - 1
  assert stop.reached["steps"] == 6 * len(losses)
  assert stop.reached["seconds"] == 6 // steps_per_execution * len(losses)


def test_fresh_examples_come_from_the_monitor_before_it(
  model, examples, native_ops
):
  stats = tfecho.Stats()
  data = examples(12).apply(tfecho.echo(2, stats=stats)).batch(4)
  data = data.apply(tfecho.monitor(stats))
  stop = StopAtTarget("loss", 0.5)
  callbacks = [EchoMonitor(stats, batch_size=4), stop]
  model.fit(data, epochs=50, verbose=0, callbacks=callbacks)
  epochs = stop.reached["epoch"] + 1
  assert stop.reached["fresh_read"] == 12 * epochs
  assert stop.reached["steps"] == 6 * epochs
