"""Mistakes that are found before a training begins, and not by its result."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfecho.checks import checked_int
from tfecho.datasets import is_echoed
from tfecho.training import graph
from tfecho.training.callbacks import (
  BackupAndRestore,
  FreshEpochs,
  StopAtTarget,
)
from tfecho.training.layers import all_layers
from tfecho.training.optimizers import inner
from tfecho.training.schedules import Schedule

# Enough to meet a class of a thousand, and read in a moment.
BATCHES_LOOKED_AT = 10

# What `fit` takes, and what does the same here.
_OF_FIT = {
  "epochs": 'say `length="2ep"`',
  "steps_per_epoch": 'say `epoch="100ba"`',
  "initial_epoch": "that is known to a `BackupAndRestore`",
  "batch_size": "it is that of the `Pipeline`",
  "class_weight": "give `data` weights, as third of (inputs, labels, weights)",
  "sample_weight": "give `data` weights, as third of (inputs, labels, weights)",
  "validation_split": "give `validation_data`",
  "validation_steps": "give `validation_data.take(steps)`",
  "validation_freq": "validation follows `epoch`",
  "shuffle": "that is `shuffle_buffer` of the `Pipeline`",
}

# --- Data -------------------------------------------------------------------


def check_validation_data(data: Any) -> None:
  """Raises ValueError if `data` is not what a model is validated on."""
  if not isinstance(data, tf.data.Dataset):
    raise ValueError(
      "`validation_data` must be a `tf.data.Dataset`, got"
      f" {type(data).__name__}"
    )
  if is_echoed(data):
    raise ValueError(
      "`validation_data` is echoed: some examples would count more often than"
      " others, and nothing is saved that way. Leave the echo out, as"
      " `Pipeline.dataset()` does"
    )
  if data.cardinality() == tf.data.INFINITE_CARDINALITY:
    raise ValueError(
      "`validation_data` has no end: leave `repeat` out, or `take` a part"
    )


def check_pairs(data: tf.data.Dataset, *, argument: str) -> None:
  """Raises ValueError if elements are not what a model learns from."""
  spec = data.element_spec
  if not isinstance(spec, tuple) or len(spec) not in (2, 3):
    raise ValueError(
      f"`{argument}` must give pairs (inputs, labels), or triples with"
      f" weights, got {type(spec).__name__} in the structure {spec}"
    )


def check_examples(
  data: tf.data.Dataset, model: keras.Model, loss: Any, *, argument: str
) -> None:
  """Raises ValueError if the first batches are none, or can't be learnt.

  Args:
    data: batches that `check_pairs` lets pass.
    model: from these inputs.
    loss: as `compile` takes it. What labels are right is known of the cross
      entropies, for one output.
    argument: what to call `data` in errors.
  """
  labels = None
  # Not `iter(data)`, which may be where a training goes on.
  for batch in data.take(BATCHES_LOOKED_AT):
    labels = batch[1]
    if isinstance(labels, tf.Tensor):  # and not a ragged one
      _check_labels(labels.numpy(), model, loss, argument)
  if labels is None:
    raise ValueError(f"`{argument}` is empty")


def _check_labels(
  labels: np.ndarray, model: keras.Model, loss: Any, argument: str
) -> None:
  _check_form(labels, model, loss, argument)
  if _is(loss, "SparseCategoricalCrossentropy"):
    classes = _number_of_outputs(model)
    ignored = _config(loss).get("ignore_class")
    labels = labels[labels != ignored] if ignored is not None else labels
    highest = classes and classes - 1
  elif _is(loss, "CategoricalCrossentropy") or _is(loss, "BinaryCrossentropy"):
    highest = 1
  else:
    return
  if highest is None or not labels.size:
    return
  if labels.min() < 0 or labels.max() > highest:
    raise ValueError(
      f"labels of `{argument}` must be from 0 to {highest} for this loss and"
      f" this model, got {labels.min()} to {labels.max()} in one of its first"
      " batches"
    )


def _check_form(
  labels: np.ndarray, model: keras.Model, loss: Any, argument: str
) -> None:
  """Raises ValueError for one label where there should be one per class."""
  classes = _number_of_outputs(model)
  if classes in (None, 1):
    return
  per_class = (
    labels.ndim == len(model.outputs[0].shape) and labels.shape[-1] == classes
  )
  wanted = None
  if _is(loss, "SparseCategoricalCrossentropy") and per_class:
    wanted = "the number of a class, or the loss the CategoricalCrossentropy"
  if _is(loss, "CategoricalCrossentropy") and not per_class:
    wanted = "one-hot, as `tf.one_hot` makes them"
  if wanted:
    raise ValueError(
      f"labels of `{argument}` must be {wanted}: got them in the shape"
      f" {labels.shape} for {classes} outputs"
    )


def _is(loss: Any, name: str) -> bool:
  """Whether a loss is this one, however it is given."""
  given = loss if isinstance(loss, str) else getattr(loss, "__name__", "")
  if not given:
    given = type(loss).__name__
  return given.replace("_", "").lower() == name.lower()


def _config(loss: Any) -> dict[str, Any]:
  return loss.get_config() if isinstance(loss, keras.losses.Loss) else {}


def _number_of_outputs(model: keras.Model) -> int | None:
  """Values per example of the only output, or None if that is not known."""
  if not graph.has_graph(model) or len(model.outputs) != 1:
    return None
  return model.outputs[0].shape[-1]


# --- The model and its optimizer --------------------------------------------


def check_builder(build_model: Any) -> None:
  """Raises ValueError if it is not what makes a model."""
  if isinstance(build_model, keras.Model) or not callable(build_model):
    raise ValueError(
      "`build_model` must be a function that makes the model, called under"
      f" `precision` and `strategy`, got {type(build_model).__name__}"
    )


def check_no_fit_options(names: Iterable[str]) -> None:
  """Raises ValueError if one of them belongs to `fit`."""
  for name in names:
    if name in _OF_FIT:
      raise ValueError(f"`train` does not take `{name}`: {_OF_FIT[name]}")


def check_compile_options(names: Iterable[str], model: keras.Model) -> None:
  """Raises ValueError if Keras' `compile` does not take one of them."""
  if type(model).compile is not keras.Model.compile:
    return
  known = inspect.signature(keras.Model.compile).parameters
  for name in names:
    if name not in known or name == "self":
      raise ValueError(
        f"neither `train` nor `Model.compile` takes `{name}`; that takes"
        f" {sorted(set(known) - {'self', 'kwargs'})}"
      )


def check_model(model: Any) -> None:
  """Raises ValueError if there is none."""
  if not isinstance(model, keras.Model):
    raise ValueError(
      f"`build_model` must return a `keras.Model`, got {type(model).__name__}"
    )


def check_policy(model: keras.Model, precision: str) -> None:
  """Raises ValueError if a model computes in another precision.

  As one does that was built before the precision was set.
  """
  wanted = precision.replace("mixed_", "")
  computing = {
    layer.compute_dtype
    for layer in all_layers(model)
    if not isinstance(layer, keras.layers.InputLayer)
  }
  low = computing & {"float16", "bfloat16"}
  expected = set() if wanted == "float32" else {wanted}
  if low != expected:
    raise ValueError(
      f"`precision` is {precision!r}, and the layers of the model compute in"
      f" {sorted(computing)}: `build_model` must build it anew, when it is"
      " called"
    )


def check_schedule(rate: Any, total_steps: int) -> None:
  """Raises ValueError if a schedule and the training differ in length.

  Args:
    rate: a learning rate of any kind, or an optimizer that has one.
    total_steps: of the training.
  """
  schedule = rate if isinstance(rate, Schedule) else _schedule_of(rate)
  if schedule is None:
    return
  steps = schedule.steps
  if schedule.shape == "exponential":
    del steps["every"]  # How fast it falls, and not until when.
  total = steps.get("total", total_steps)
  if total < total_steps:
    raise ValueError(
      f"the schedule of the learning rate is over after {total:,} steps, and"
      f" the training after {total_steps:,}: leave its `total` out"
    )
  for name, duration in steps.items():
    longest = max(duration) if isinstance(duration, list) else duration
    if longest > total_steps:
      raise ValueError(
        f"the schedule of the learning rate has `{name}`={longest:,} steps, and"
        f" the training is over after {total_steps:,}"
      )


def _schedule_of(optimizer: Any) -> Schedule | None:
  """The one of ours that an optimizer goes by, or None."""
  optimizer = inner(optimizer)
  if not hasattr(optimizer, "get_config"):
    return None
  config = optimizer.get_config()
  while "optimizer" in config:  # inside of others, of tensorflow-addons
    config = config["optimizer"]["config"]
  rate = config.get("learning_rate")
  if isinstance(rate, dict) and rate.get("class_name") == "Schedule":
    return Schedule.from_config(rate["config"])
  return None


# --- How and where it runs --------------------------------------------------


def check_callbacks(
  callbacks: Sequence[keras.callbacks.Callback],
  *,
  data: Any,
  is_validated: bool,
) -> None:
  """Raises ValueError if these callbacks do not go with a training."""
  for callback in callbacks:
    if isinstance(callback, FreshEpochs):
      raise ValueError(
        "`callbacks` must not contain `FreshEpochs`: `train` makes epochs of"
        " the steps that `epoch` says"
      )
    if isinstance(callback, BackupAndRestore) and data is not callback.data:
      raise ValueError(
        "`data` must be the `data` of the `BackupAndRestore` in `callbacks`, as"
        " in `train(build_model, backup.data, ...)`. It has the echo and all"
        " other stages: `BackupAndRestore(..., data=pipeline.dataset(...))`"
      )
  if not is_validated and not any(map(_may_log, callbacks)):
    _check_unvalidated(callbacks)


def _check_unvalidated(callbacks: Sequence[keras.callbacks.Callback]) -> None:
  for callback in callbacks:
    metric = getattr(callback, "metric", "")
    if isinstance(callback, StopAtTarget) and metric.startswith("val_"):
      raise ValueError(
        f"`StopAtTarget` waits for {metric!r}, which is never there without"
        " `validation_data`"
      )


def _may_log(callback: keras.callbacks.Callback) -> bool:
  """Whether it is somebody else's, which may do its own validation."""
  package = type(callback).__module__.split(".")[0]
  is_lambda = isinstance(callback, keras.callbacks.LambdaCallback)
  return is_lambda or package not in ("keras", "tfecho")


def check_executions(steps_per_execution: Any, **durations: int) -> None:
  """Raises ValueError if one of these is not made of whole executions."""
  if steps_per_execution == "auto":
    raise ValueError(
      "`steps_per_execution` must be known in advance, since a training, and"
      " every epoch, is made of whole executions, got 'auto'"
    )
  checked_int("steps_per_execution", steps_per_execution, at_least=1)
  for argument, steps in durations.items():
    if steps % steps_per_execution:
      raise ValueError(
        f"`steps_per_execution`={steps_per_execution} must divide `{argument}`,"
        f" which is {steps:,} steps"
      )


def check_strategy(strategy: Any) -> None:
  """Raises ValueError if `fit` does not work under a strategy."""
  if strategy is None:
    return
  if not isinstance(strategy, tf.distribute.Strategy):
    raise ValueError(
      "`strategy` must be a `tf.distribute.Strategy`, got"
      f" {type(strategy).__name__}"
    )
  backend = keras.backend.backend()
  if backend != "tensorflow":
    raise ValueError(
      f"`strategy` needs the TensorFlow backend, this is {backend!r}"
    )
  several = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
  if several and hasattr(keras, "ops"):
    raise ValueError(
      "`strategy`: `fit` of Keras 3 fails under a MultiWorkerMirroredStrategy,"
      " where it builds the model from a batch that is spread over workers;"
      " that of Keras 2.15 does not"
    )
