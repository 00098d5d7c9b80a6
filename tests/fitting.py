"""Fits a small model to a dataset, and counts its steps."""

import logging
import warnings

import keras

EPOCHS = 3


def steps_of_fit(dataset, **arguments):
  """Returns the optimizer steps of EPOCHS epochs, none of them cut short."""
  model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
  model.compile(optimizer="sgd", loss="mse")
  # Otherwise Keras 3 says that it does not shuffle datasets.
  arguments = {"epochs": EPOCHS, "verbose": 0, "shuffle": False, **arguments}
  # Keras 3 warns if the data run out, Keras 2 writes it into TensorFlow's log.
  with warnings.catch_warnings(), _log_as_errors():
    warnings.simplefilter("error")
    model.fit(dataset, **arguments)
  return int(model.optimizer.iterations)


class _log_as_errors(logging.Handler):
  """Raises, while this is entered, if it is logged that data ran out.

  Nothing else: after some trainings in one process, TensorFlow also logs that
  it traces often.
  """

  def __enter__(self):
    logging.getLogger("tensorflow").addHandler(self)
    return self

  def __exit__(self, *_):
    logging.getLogger("tensorflow").removeHandler(self)

  def emit(self, record):
    if "ran out of data" in record.getMessage():
      raise AssertionError(record.getMessage())
