"""One call that trains, with everything of this package in its place.

    result = train(
      build_model,
      pipeline,
      echo={"echo_after": "decode", "factor": 4},
      validation_data=validation,
      length="90ep",
      optimizer=functools.partial(keras.optimizers.SGD, momentum=0.9),
      learning_rate=schedules.cosine(0.1, warmup="5ep"),
      loss="sparse_categorical_crossentropy",
      metrics=["accuracy"],
      precision="mixed_bfloat16",
      layout="channels_last",
    )
    result.curve[-1]["val_accuracy"], result.fresh_examples, result.seconds

It does nothing that cannot be done around a `model.fit` of one's own; it does
it in the right order, and looks for mistakes before.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfecho.pipeline import Pipeline
from tfecho.stats import Stats
from tfecho.training import feeds, likeness, optimizers, preflight
from tfecho.training.augmentation import Augmentation, in_train_step
from tfecho.training.callbacks import AveragedWeights, BackupAndRestore
from tfecho.training.callbacks.averages import has_averages
from tfecho.training.callbacks.course import Course
from tfecho.training.durations import Duration, Timeline
from tfecho.training.layout import to_channels_last
from tfecho.training.precision import (
  check_name,
  check_precision,
  policy_scope,
)
from tfecho.training.schedules import Schedule

LAYOUTS = ("channels_last",)


@dataclasses.dataclass(frozen=True)
class TrainingResult:
  """What a training came to.

  Attributes:
    model: the trained model.
    steps: how many were made, before it was resumed, too.
    fresh_examples: how many of them the training has used: counted, if it was
      given `stats`; else what so many steps take at a constant factor, or None
      if nothing is known. Of those before it was resumed there is no count.
    seconds: of training, validation left out, since it began or was resumed.
    curve: for every epoch since then a dict of `epoch`, counted from 0, and up
      to its end `steps`, `fresh_examples` and `seconds`, and its logs.
  """

  model: keras.Model
  steps: int
  fresh_examples: int | None
  seconds: float
  curve: list[dict[str, Any]]


def train(
  build_model: Callable[[], keras.Model],
  data: Pipeline | tf.data.Dataset,
  *,
  length: str | Duration,
  optimizer: Any,
  loss: Any,
  metrics: Any = None,
  learning_rate: float | Schedule | None = None,
  validation_data: tf.data.Dataset | None = None,
  echo: Mapping[str, Any] | None = None,
  epoch: str | Duration = "1ep",
  timeline: Timeline | None = None,
  stats: Stats | None = None,
  precision: str | None = None,
  layout: str | None = None,
  augment: Augmentation | None = None,
  callbacks: Sequence[keras.callbacks.Callback] = (),
  strategy: tf.distribute.Strategy | None = None,
  seed: int | None = None,
  verbose: Any = "auto",
  **compile_options: Any,
) -> TrainingResult:
  """Builds a model, and trains it for so long.

  An epoch is one pass over the fresh data, so under an echo of factor 4 it has
  four times the steps. Validation, the logs, and all that callbacks count in
  epochs, follow that; `epoch` makes it another duration.

  ```python
  import keras
  import tensorflow as tf
  import tfecho
  from tfecho.training import schedules, train

  def build_model():
    return keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])

  def decode(i):
    x = tf.cast(i, tf.float32)[None] / 10
    return x, 2 * x

  source = tf.data.Dataset.range(10)
  pipeline = tfecho.Pipeline(source, decode=decode, batch_size=5)
  result = train(
    build_model,
    pipeline,
    echo={"echo_after": "decode", "factor": 3},
    validation_data=pipeline.dataset(),
    length="2ep",
    optimizer="sgd",
    learning_rate=schedules.cosine(0.1, warmup="0.1dur"),
    loss="mse",
    verbose=0,
  )
  assert (result.steps, result.fresh_examples) == (12, 20)
  assert result.curve[1]["val_loss"] < result.curve[0]["val_loss"]
  ```

  Args:
    build_model: makes the model. It is called under `precision` and `strategy`,
      and after `seed` was set.
    data: a `Pipeline`, or a dataset of batches: one pass over the data, whose
      number of batches is known, or an endless one.
    length: duration of the training, such as "90ep", "10_000ba" (steps) or
      "1e6sp" (fresh examples). Callbacks may end it earlier.
    optimizer: its name, as for `optimizers.get`; a function, such as its
      class, that makes it from a `learning_rate`; or the optimizer itself,
      without a `strategy`. Of weights that it averages, the averages are
      validated, and are those of the model in the end.
    loss: as for `Model.compile`.
    metrics: likewise.
    learning_rate: a number; one of `schedules`, whose `total` is by default the
      whole training; or None for that of `optimizer`. See the README for where
      to start under an echo.
    validation_data: batches to validate on at the end of every epoch, with an
      end, not echoed, and like those of `data`.
    echo: for a `Pipeline`, arguments of `Pipeline.dataset`, such as
      `{"echo_after": "decode", "factor": 4}`.
    epoch: duration of what `fit` takes for an epoch. For a dataset with an end
      it must be a pass over that.
    timeline: converts durations into steps. By default from what `data` says
      about itself. Needed for "sp" with a dataset; for "ep" with an endless
      one; and for both under a factor that is not known in advance.
    stats: for a `Pipeline`: counts what the echo does, and what is waited for,
      and adds an `EchoMonitor` to the callbacks.
    precision: as for `set_precision`, for this model only; None for what was
      set.
    layout: "channels_last" converts what `build_model` makes by
      `to_channels_last`. The data keeps the layout that it has. None leaves the
      model alone.
    augment: what to do with batches on the device, in the training step: one of
      `augmentation`, made with `side="device"`. What runs on the host belongs
      into the `Pipeline`.
    callbacks: Keras', and those of this package. With `BackupAndRestore`,
      `data` is `backup.data`, and the training is resumed.
    strategy: where to train; None for one device. Under a
      `MultiWorkerMirroredStrategy`, with Keras 2.15, every worker makes the
      same call; batches are those of all workers together, and the source of a
      `Pipeline` is the whole, which TensorFlow divides, or the worker's shard.
    seed: of Python, NumPy and the backend, set before anything is made:
      weights, random layers and `augment` follow from it.
    verbose: as for `fit`.
    **compile_options: further arguments of `Model.compile`, such as
      `steps_per_execution`, which divides `length` and `epoch`.

  Returns:
    A `TrainingResult`.

  Raises:
    ValueError: if an argument is not as described; if `validation_data` are
      unlike `data`, or `timeline` contradicts the `Pipeline` and its echo; if
      there are no data, or labels in the first batches that are none for this
      loss and model (not looked for with `BackupAndRestore`); if the schedule
      of the learning rate ends before the training, or after it; if the model
      has another precision than asked for; or if `fit` does not work under
      `strategy`.
  """
  if seed is not None:
    keras.utils.set_random_seed(seed)
  preflight.check_strategy(strategy)
  preflight.check_builder(build_model)
  preflight.check_no_fit_options(compile_options)
  preflight.check_callbacks(
    callbacks, data=data, is_validated=validation_data is not None
  )
  if validation_data is not None:
    preflight.check_validation_data(validation_data)
  feed = feeds.make(
    data,
    length=length,
    epoch=epoch,
    echo=echo,
    timeline=timeline,
    stats=stats,
    strategy=strategy,
  )
  if compile_options.get("steps_per_execution", 1) is None:
    del compile_options["steps_per_execution"]  # Keras 3 could not `fit`.
  preflight.check_executions(
    compile_options.get("steps_per_execution", 1),
    length=feed.total_steps,
    epoch=feed.epoch_steps,
  )
  if isinstance(learning_rate, Schedule):
    learning_rate = learning_rate.on(feed.timeline)
    preflight.check_schedule(learning_rate, feed.total_steps)
  with _scope(strategy):
    optimizer = _optimizer(optimizer, learning_rate, strategy)
    model = compiled(
      build_model,
      optimizer,
      precision=precision,
      layout=layout,
      augment=augment,
      seed=seed,
      loss=loss,
      metrics=metrics,
      **compile_options,
    )
  preflight.check_schedule(optimizer, feed.total_steps)
  preflight.check_pairs(feed.dataset, argument="data")
  if validation_data is not None:
    preflight.check_pairs(validation_data, argument="validation_data")
    likeness.check(validation_data, feed.dataset, model)
  if _backup(callbacks) is None:  # Its position would not stay where it is.
    preflight.check_examples(feed.sample, model, loss, argument="data")
  if validation_data is not None:
    preflight.check_examples(
      validation_data, model, loss, argument="validation_data"
    )
  return _fit(model, feed, callbacks, validation_data, verbose)


def compiled(
  build_model: Callable[[], keras.Model],
  optimizer: keras.optimizers.Optimizer,
  *,
  precision: str | None = None,
  layout: str | None = None,
  augment: Augmentation | None = None,
  seed: int | None = None,
  **compile_options: Any,
) -> keras.Model:
  """Returns the model that `train` trains, whose arguments these are."""
  model = _build(build_model, precision, layout)
  if augment is not None:
    in_train_step(model, augment, seed=seed or 0)
  preflight.check_compile_options(compile_options, model)
  with policy_scope(model.dtype_policy):
    model.compile(optimizer, **compile_options)
  if model.built:
    # A step that has to make them is traced twice; on replicas, it fails at
    # those that addons put on top of other optimizers.
    optimizers.build(model.optimizer, model.trainable_variables)
  check_precision(model)
  return model


def _scope(strategy: Any) -> Any:
  return contextlib.nullcontext() if strategy is None else strategy.scope()


def _build(
  build_model: Callable[[], keras.Model],
  precision: str | None,
  layout: str | None,
) -> keras.Model:
  if layout not in (None, *LAYOUTS):
    raise ValueError(
      f"`layout` must be None or one of {list(LAYOUTS)}, got {layout!r}"
    )
  policy = precision or keras.mixed_precision.global_policy().name
  check_name(policy)
  with policy_scope(policy):
    model = build_model()
  preflight.check_model(model)
  if precision is not None or policy != "float32":  # Else layers may choose.
    preflight.check_policy(model, policy)
  if layout is None:
    return model
  return to_channels_last(model, keep_input_layout=True)


def _optimizer(optimizer: Any, rate: Any, strategy: Any) -> Any:
  if isinstance(optimizer, str):
    return optimizers.get(optimizer, learning_rate=rate)
  if isinstance(optimizer, type) or not hasattr(optimizer, "apply_gradients"):
    if not callable(optimizer):
      raise ValueError(
        "`optimizer` must be a name, a function or an optimizer, got"
        f" {optimizer!r}"
      )
    return optimizer() if rate is None else optimizer(learning_rate=rate)
  if rate is not None:
    raise ValueError(
      "`optimizer` has its learning rate already: give a function that makes"
      " it, such as its class, or leave `learning_rate` out"
    )
  if strategy is not None:
    raise ValueError(
      "`optimizer` must be a name or a function that makes it: under a"
      " `strategy`, its variables belong to that"
    )
  return optimizer


def _backup(
  callbacks: Sequence[keras.callbacks.Callback],
) -> BackupAndRestore | None:
  backups = [c for c in callbacks if isinstance(c, BackupAndRestore)]
  return backups[0] if backups else None


def _fit(
  model: keras.Model,
  feed: feeds.Feed,
  callbacks: Sequence[keras.callbacks.Callback],
  validation_data: tf.data.Dataset | None,
  verbose: Any,
) -> TrainingResult:
  backup = _backup(callbacks)
  epochs_made = 0 if backup is None else backup.initial_epoch
  steps_made = 0 if backup is None else backup.initial_step
  course = Course(
    total_steps=feed.total_steps,
    first_step=epochs_made * feed.epoch_steps + steps_made,
    fresh_examples=feed.timeline.fresh_examples,
  )
  averages = [AveragedWeights()] if has_averages(model) else []
  model.fit(
    feed.dataset,
    steps_per_epoch=feed.epoch_steps if feed.is_endless else None,
    initial_epoch=epochs_made,
    epochs=feed.epochs,
    validation_data=validation_data,
    callbacks=[*feed.monitors, *averages, *callbacks, course],
    verbose=verbose,
    shuffle=False,  # Else Keras 3 says that it does not shuffle datasets.
  )
  return TrainingResult(
    model=model,
    steps=course.total_steps_made,
    fresh_examples=course.rows[-1]["fresh_examples"] if course.rows else None,
    seconds=course.seconds,
    curve=course.rows,
  )
