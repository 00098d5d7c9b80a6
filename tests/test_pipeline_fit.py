"""How many optimizer steps `fit` makes of what a Pipeline hands it."""

import keras
import pytest
import tensorflow as tf
from fitting import EPOCHS, steps_of_fit

import tfecho
from tfecho.pipeline import PLACES, Pipeline

EXAMPLES = 25


def example(i):
  x = tf.cast([i], tf.float32)
  return x, -x


def pipeline():
  source = tf.data.Dataset.range(EXAMPLES)
  return Pipeline(source, read=abs, decode=example, batch_size=4, seed=0)


def kinds(factor):
  """Every way to say `factor`, as arguments of `Pipeline.dataset`."""
  return {
    "even": {"factor": factor},
    "random": {"factor": factor, "rounding": "random"},
    "variable": {"factor": tfecho.factor_variable(factor)},
    "random variable": {
      "factor": tfecho.factor_variable(factor),
      "rounding": "random",
    },
  }


@pytest.mark.parametrize(
  "echo_after, factor, steps",
  [
    ("decode", 2, 13),  # 50 copies by 4
    ("decode", 2.5, 16),  # 62 copies by 4
    ("batch", 2, 14),  # of 7 batches
    ("batch", 2.5, 17),
  ],
)
def test_every_kind_of_factor_makes_as_many_steps(
  implementation, echo_after, factor, steps
):
  for arguments in kinds(factor).values():
    echo = {"echo_after": echo_after, "factor": arguments["factor"]}
    stages = pipeline()
    made = steps_of_fit(
      stages.dataset(
        echo_after=echo_after, implementation=implementation, **arguments
      ),
      steps_per_epoch=stages.steps_per_epoch(**echo),
    )
    assert made == EPOCHS * steps


@pytest.mark.parametrize("echo_after", [None, *PLACES])
def test_fit_counts_a_constant_factor_by_itself(implementation, echo_after):
  stages = pipeline()
  echo = {"echo_after": echo_after, "factor": echo_after and 2.5}
  dataset = stages.dataset(implementation=implementation, **echo)
  assert steps_of_fit(dataset) == EPOCHS * stages.steps_per_epoch(**echo)


def test_a_factor_that_changes_does_not_change_the_length_of_epochs(
  implementation,
):
  factor = tfecho.factor_variable(3)
  stages = pipeline()

  class Lower(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
      factor.assign(3 - epoch)

  made = steps_of_fit(
    stages.dataset(
      echo_after="decode", factor=factor, implementation=implementation
    ),
    steps_per_epoch=stages.steps_per_epoch(echo_after="decode", factor=factor),
    callbacks=[Lower()],
  )
  assert made == EPOCHS * 19


def test_data_that_run_out_are_noticed_here():
  with pytest.raises((UserWarning, AssertionError), match="ran out of data"):
    steps_of_fit(pipeline().dataset(), steps_per_epoch=8)


def test_the_same_pipeline_validates(implementation):
  train = pipeline().dataset(
    echo_after="decode", factor=2, implementation=implementation
  )
  assert steps_of_fit(train, validation_data=pipeline().dataset()) == 39
