"""What a workload is: everything about a training task but how it is fed.

A workload says what to train on, through which stages, and how good is good
enough. Where the echo stands, how often it repeats and for how long to train is
up to the experiment.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import keras
import tensorflow as tf

from tfecho.training.schedules import Schedule


@dataclasses.dataclass(frozen=True)
class Workload:
  """One training task; all functions in it are free of state.

  Attributes:
    name: Name of the workload, as in `workloads.get`.
    preset: Which of its sizes this is.
    description: Data and model in half a line, for reports.
    train_examples: Number of distinct training examples.
    batch_size: Examples per training step, unless an experiment says otherwise.
    train: Returns a dataset with one pass over the keys of the training
      examples, in a fixed order. A key is whatever `read` takes.
    validation: Returns a finite dataset of batches as `model` takes them:
      decoded, neither augmented nor repeated.
    read: From a key to a record; this and the next two are called as
      `Dataset.map` calls a function, tuples unpacked.
    decode: From a record to an example: a pair (inputs, labels).
    augment: From an example and a `seed`, int64 of shape [2], to an example;
      None for data that are not augmented.
    model: Builds the model, with newly drawn weights.
    optimizer: Builds the optimizer, from a learning rate.
    loss: Builds the loss, from labels and outputs to a scalar.
    learning_rate: Of the full recipe: a number, or one of
      `tfecho.training.schedules`, written in durations.
    length: Duration of the full recipe, such as "90ep".
    metric: Builds the metric that the targets are about: something with the
      `update_state(labels, outputs)`, `result()` and `reset_state()` of
      `keras.metrics.Metric`, called outside of any graph.
    metric_name: Its name, for reports.
    maximize: Whether a larger metric is a better one.
    targets: Values of the metric, from easy to hard.
    max_steps: Training steps after which a target counts as missed.
    evaluation_steps: Training steps from one evaluation to the next.
    shuffle_buffer: Number of keys among which the next one is chosen, where
      not all of them fit into memory; None if they do.
    localized: Whether labels say where in the inputs something is, so that
      nothing but `augment` may move that.
  """

  name: str
  preset: str
  description: str
  train_examples: int
  batch_size: int
  train: Callable[[], tf.data.Dataset]
  validation: Callable[[], tf.data.Dataset]
  read: Callable
  decode: Callable
  augment: Callable | None
  model: Callable[[], keras.Model]
  optimizer: Callable[[float], keras.optimizers.Optimizer]
  loss: Callable[[], keras.losses.Loss]
  learning_rate: float | Schedule
  length: str
  metric: Callable[[], keras.metrics.Metric]
  metric_name: str
  maximize: bool
  targets: tuple[float, ...]
  max_steps: int
  evaluation_steps: int
  shuffle_buffer: int | None = None
  localized: bool = False
