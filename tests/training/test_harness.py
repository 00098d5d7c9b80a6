"""`train` does what a `fit` with everything in its place does, and refuses."""

import functools
import json
import re

import forking
import keras
import numpy as np
import pytest
import tensorflow as tf
from backends import needs_tensorflow

import tfecho
from tfecho.training import (
  BackupAndRestore,
  EchoMonitor,
  FreshEpochs,
  StopAtTarget,
  Timeline,
  check_layout,
  schedules,
  set_precision,
  train,
)

EXAMPLES = 20
BATCH_SIZE = 4
CLASSES = 3


def build_model(outputs=1):
  ones = keras.initializers.Constant(0.1)
  return keras.Sequential(
    [
      keras.Input((1,)),
      keras.layers.Dense(2, activation="relu", kernel_initializer=ones),
      keras.layers.Dense(outputs, kernel_initializer=ones, dtype="float32"),
    ]
  )


def classifier():
  return build_model(CLASSES)


def decode(i):
  x = tf.cast(i, tf.float32)[None] / EXAMPLES
  return x, 2 * x


def make_pipeline(examples=EXAMPLES, **options):
  return tfecho.Pipeline(
    tf.data.Dataset.range(examples),
    decode=decode,
    batch_size=BATCH_SIZE,
    seed=3,
    **options,
  )


def labelled(labels):
  """Batches of the inputs 0, and these labels."""
  inputs = np.zeros([len(labels), 1], np.float32)
  return tf.data.Dataset.from_tensor_slices((inputs, labels)).batch(BATCH_SIZE)


def run(data=None, **changed):
  options = {
    "build_model": build_model,
    "data": make_pipeline() if data is None else data,
    "length": "2ep",
    "optimizer": "sgd",
    "loss": "mse",
    "verbose": 0,
    **changed,
  }
  return train(options.pop("build_model"), options.pop("data"), **options)


def echo_of(implementation, factor=2, echo_after="decode", **options):
  return {
    "echo_after": echo_after,
    "factor": factor,
    "implementation": implementation,
    **options,
  }


# --- How long ---------------------------------------------------------------


@pytest.mark.parametrize(
  "factor, length, steps",
  [
    # Of 5 steps without an echo.
    (1, "2ep", [5, 10]),
    (2, "2ep", [10, 20]),
    (2.5, "1ep", [13]),
    (2, "1.5ep", [10, 15]),
    (2, "7ba", [7]),
    (2, "12ba", [10, 12]),
    (2, "30sp", [10, 15]),
  ],
)
def test_a_training_has_the_length_that_was_asked_for(
  implementation, factor, length, steps
):
  result = run(length=length, echo=echo_of(implementation, factor))
  assert [row["steps"] for row in result.curve] == steps
  assert result.steps == steps[-1] == int(result.model.optimizer.iterations)
  assert result.fresh_examples == pytest.approx(
    result.steps * BATCH_SIZE / factor, rel=0.05
  )


def test_an_epoch_is_what_it_is_told_to_be():
  result = run(
    length="2ep", epoch="15sp", validation_data=make_pipeline().dataset()
  )
  assert [row["steps"] for row in result.curve] == [4, 8, 10]
  assert all("val_loss" in row for row in result.curve)


@pytest.mark.parametrize("length, steps", [("2ep", [5, 10]), ("7ba", [5, 7])])
def test_a_dataset_that_ends_says_what_an_epoch_is(length, steps):
  result = run(make_pipeline().dataset(), length=length)
  assert [row["steps"] for row in result.curve] == steps


def test_an_endless_dataset_is_told_what_an_epoch_is():
  data = make_pipeline().dataset().repeat()
  timeline = Timeline(batch_size=BATCH_SIZE, fresh_examples=EXAMPLES)
  assert run(data, timeline=timeline).steps == 10
  assert run(data, length="7ba", epoch="3ba").steps == 7


def test_a_factor_that_changes_has_a_declared_mean(implementation):
  echo = echo_of(implementation, tfecho.factor_variable(3))
  mean = Timeline(batch_size=BATCH_SIZE, fresh_examples=EXAMPLES, factor=2)
  assert run(echo=echo, timeline=mean).steps == 20
  with pytest.raises(ValueError, match="`length`.*not known in advance"):
    run(echo=echo)


@pytest.mark.parametrize(
  "said",
  [{"factor": 3}, {"batch_size": 5}, {"fresh_examples": 21}, {"factor": 1}],
)
def test_a_timeline_that_contradicts_the_pipeline_is_refused(said):
  ((name, value),) = said.items()
  truth = {"batch_size": BATCH_SIZE, "fresh_examples": EXAMPLES, "factor": 2}
  timeline = Timeline(**{**truth, **said})
  message = f"`timeline` has `{name}`={value}, and the data {truth[name]}"
  with pytest.raises(ValueError, match=message):
    run(echo=echo_of("graph"), timeline=timeline)


def test_a_timeline_of_steps_need_not_say_the_factor():
  timeline = Timeline(steps_per_epoch=7)
  assert run(echo=echo_of("graph"), timeline=timeline).steps == 14


@pytest.mark.parametrize("echo_after, elements", [("decode", 1), ("batch", 4)])
def test_fresh_examples_are_counted_if_there_are_stats(
  native_ops, echo_after, elements
):
  stats = tfecho.Stats()
  result = run(echo=echo_of("native", 2, echo_after), stats=stats)
  # Not equal: JAX's `fit` reads ahead of the last step.
  assert 0 < result.fresh_examples <= stats.consumed * elements
  assert result.fresh_examples == result.curve[-1]["fresh_consumed"]
  assert result.curve[0]["fresh_examples"] < result.fresh_examples
  assert result.curve[0]["examples_per_second"] > 0


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize(
  "no_echo",
  [
    {},
    {"echo_after": None},
    {"echo_after": None, "factor": None, "max_factor": None},
    {"implementation": "native"},
  ],
)
def test_an_echo_that_is_none_may_be_written_out(native_ops, no_echo, counts):
  """As `Pipeline.dataset` takes it."""
  result = run(echo=no_echo, stats=tfecho.Stats() if counts else None)
  assert result.steps == 10
  assert result.fresh_examples == 2 * EXAMPLES


@pytest.mark.parametrize("size", [None, 1, 5, np.int64(5)])
def test_executions_of_several_steps_are_counted(size):
  assert run(steps_per_execution=size).steps == 10


# --- What is put together ---------------------------------------------------


def test_it_does_what_a_fit_of_ones_own_does(implementation):
  # Without `shuffle_buffer`: JAX's `fit` makes two iterators, of which the
  # second shuffles as it is left by the first, however far that read ahead.
  echo = echo_of(implementation)
  result = run(
    echo=echo,
    validation_data=make_pipeline().dataset(),
    optimizer=functools.partial(keras.optimizers.SGD, momentum=0.9),
    learning_rate=schedules.cosine(0.1, warmup="2ba"),
    seed=1,
  )
  keras.utils.set_random_seed(1)
  model = build_model()
  rate = schedules.cosine(0.1, "20ba", warmup="2ba")
  model.compile(keras.optimizers.SGD(rate, momentum=0.9), "mse")
  history = model.fit(
    make_pipeline().dataset(**echo, repeat=True),
    steps_per_epoch=10,
    epochs=2,
    validation_data=make_pipeline().dataset(),
    shuffle=False,
    verbose=0,
  )
  assert_same_weights(result.model, model)
  for name, values in history.history.items():
    assert [row[name] for row in result.curve] == pytest.approx(values)


def test_precision_layout_and_schedule_go_together():
  def build():
    return keras.Sequential(
      [
        keras.Input((1, 4, 4)),
        keras.layers.Conv2D(2, 3, data_format="channels_first"),
        keras.layers.Flatten(),
        keras.layers.Dense(CLASSES, dtype="float32"),
      ]
    )

  images = tf.random.stateless_uniform([8, 1, 4, 4], [1, 2])
  labels = tf.range(8) % CLASSES
  data = tf.data.Dataset.from_tensor_slices((images, labels)).batch(4)
  result = run(
    data,
    build_model=build,
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
    learning_rate=schedules.linear(0.1),
    precision="mixed_bfloat16",
    layout="channels_last",
  )
  check_layout(result.model)
  assert result.model.input_shape == (None, 1, 4, 4)
  (convolution,) = (x for x in result.model.layers if "conv" in x.name)
  assert convolution.compute_dtype == "bfloat16"
  assert keras.mixed_precision.global_policy().name == "float32"
  assert set(result.curve[0]) >= {"loss", "accuracy"}


def test_float16_gets_its_loss_scaled():
  result = run(precision="mixed_float16")
  assert hasattr(result.model.optimizer, "inner_optimizer")


def test_the_precision_that_was_set_is_the_default():
  set_precision("mixed_bfloat16")
  result = run()
  assert result.model.layers[0].compute_dtype == "bfloat16"


@pytest.mark.parametrize(
  "optimizer, learning_rate, expected",
  [
    ("sgd", 0.5, 0.5),
    ("SGD", None, 0.01),
    (keras.optimizers.SGD, 0.5, 0.5),
    (lambda: keras.optimizers.SGD(0.25), None, 0.25),
  ],
)
def test_an_optimizer_is_named_or_made(optimizer, learning_rate, expected):
  result = run(optimizer=optimizer, learning_rate=learning_rate)
  made = result.model.optimizer
  assert isinstance(made, keras.optimizers.SGD)
  assert float(made.learning_rate) == pytest.approx(expected)


def test_an_optimizer_may_be_ready():
  optimizer = keras.optimizers.Adam(schedules.linear(0.1, "10ba"))
  assert run(optimizer=optimizer).model.optimizer is optimizer


def test_a_schedule_is_as_long_as_the_training_unless_it_says_otherwise():
  schedule = schedules.linear(1.0, warmup="0.2dur")
  config = run(learning_rate=schedule).model.optimizer.get_config()
  made = config["learning_rate"]["config"]
  assert made["durations"] == {"total": "10ba"}
  assert made["warmup"] == "2ba"


def test_callbacks_may_end_it_and_see_what_others_log():
  data = make_pipeline().dataset()
  stop = StopAtTarget("val_loss", 1e9)
  result = run(length="9ep", validation_data=data, callbacks=[stop])
  assert result.steps == stop.reached["steps"] == 5
  assert len(result.curve) == 1


class Interruption(Exception):
  """What ends a training from within."""


class Interrupt(keras.callbacks.Callback):
  """Ends a training before its step 8."""

  def on_train_batch_begin(self, batch, logs=None):
    if int(self.model.optimizer.iterations) == 8:
      raise Interruption


@needs_tensorflow
def test_a_training_that_was_interrupted_is_resumed(tmp_path):
  def resumable(directory, *callbacks):
    data = make_pipeline(shuffle_buffer=EXAMPLES).dataset(repeat=True)
    backup = BackupAndRestore(directory, data=data, every_steps=2)
    return run(
      backup.data,
      length="13ba",
      epoch="5ba",
      optimizer="adam",
      callbacks=[*callbacks, backup],
    )

  whole = resumable(tmp_path / "whole")
  with pytest.raises(Interruption):
    resumable(tmp_path / "parts", Interrupt())
  result = resumable(tmp_path / "parts")
  assert [row["steps"] for row in result.curve] == [10, 13]
  assert result.steps == whole.steps == 13
  assert_same_weights(result.model, whole.model)


@needs_tensorflow
@pytest.mark.parametrize("every_steps, before", [(None, 5), (2, 7)])
def test_fresh_examples_before_an_interruption_are_not_forgotten(
  native_ops, tmp_path, every_steps, before
):
  known = Timeline(batch_size=BATCH_SIZE, fresh_examples=EXAMPLES, factor=2)

  def resumable(*callbacks, timeline=known):
    stats = tfecho.Stats()
    echo = echo_of("native", 2, repeat=True, echo_buffer=0)
    data = make_pipeline().dataset(**echo, stats=stats)
    backup = BackupAndRestore(tmp_path, data=data, every_steps=every_steps)
    return run(
      backup.data,
      length="20ba",
      epoch="5ba",
      timeline=timeline,
      callbacks=[
        EchoMonitor(stats, batch_size=BATCH_SIZE), *callbacks, backup
      ],
    )

  with pytest.raises(Interruption):
    resumable(Interrupt())
  result = resumable()
  counted = [row["fresh_consumed"] for row in result.curve]
  used = known.fresh_examples(before)
  assert [row["fresh_examples"] for row in result.curve] == [
    used + count for count in counted
  ]
  assert result.fresh_examples == used + counted[-1]

  with pytest.raises(Interruption):
    resumable(Interrupt())
  assert resumable(timeline=None).fresh_examples is None


@needs_tensorflow
def test_a_training_with_a_backup_needs_its_data(tmp_path):
  pipeline = make_pipeline()
  backup = BackupAndRestore(tmp_path, data=pipeline.dataset(repeat=True))
  for data in (pipeline, backup.data.prefetch(1)):
    with pytest.raises(ValueError, match=r"train\(build_model, backup.data, "):
      run(data, length="10ba", epoch="5ba", callbacks=[backup])
  assert list(tmp_path.iterdir()) == []


def assert_same_weights(model, other):
  for value, expected in zip(model.get_weights(), other.get_weights()):
    np.testing.assert_allclose(value, expected, rtol=1e-6)


# --- Mistakes ---------------------------------------------------------------


def test_an_echo_is_told_by_its_arguments():
  with pytest.raises(ValueError, match="`echo` must be a dict .* got 4"):
    run(echo=4)


def test_an_endless_dataset_needs_an_end():
  data = make_pipeline().dataset().repeat()
  needed = "`steps_per_epoch`, in a `timeline`"
  with pytest.raises(ValueError, match=f"`length`='2ep'.*{needed}"):
    run(data)
  with pytest.raises(ValueError, match=f"`epoch`='1ep'.*{needed}"):
    run(data, length="10ba")


def test_data_of_unknown_length_are_refused():
  data = make_pipeline().dataset().filter(lambda x, y: True)
  with pytest.raises(ValueError, match="does not know where.*assert_cardin"):
    run(data)


def test_empty_data_are_refused():
  empty = make_pipeline().dataset().take(0)
  with pytest.raises(ValueError, match="`data` is empty"):
    run(empty)
  with pytest.raises(ValueError, match="0 elements"):
    run(make_pipeline(examples=0))
  with pytest.raises(ValueError, match="`validation_data` is empty"):
    run(validation_data=empty)
  # Of which nobody knows before.
  nothing_left = make_pipeline().dataset().filter(lambda x, y: False)
  with pytest.raises(ValueError, match="`validation_data` is empty"):
    run(validation_data=nothing_left)
  with pytest.raises(ValueError, match="`data` is empty"):
    run(nothing_left.repeat(), length="3ba", epoch="3ba")


@pytest.mark.parametrize("echo_after", ["decode", "batch"])
@pytest.mark.parametrize("buffer", [None, 0])
def test_echoed_validation_data_are_refused(implementation, echo_after, buffer):
  echo = echo_of(implementation, 2, echo_after, echo_buffer=buffer)
  echoed = make_pipeline().dataset(**echo)
  with pytest.raises(ValueError, match="`validation_data` is echoed"):
    run(validation_data=echoed)
  zipped = tf.data.Dataset.zip((echoed, echoed)).map(lambda a, b: a).cache()
  with pytest.raises(ValueError, match="`validation_data` is echoed"):
    run(validation_data=zipped)


def test_validation_data_echoed_on_stall_are_refused(native_ops):
  echoed = make_pipeline().dataset(echo_after="decode", max_factor=2)
  with pytest.raises(ValueError, match="`validation_data` is echoed"):
    run(validation_data=echoed)


@pytest.mark.parametrize(
  "validation_data, message",
  [
    ([1, 2], "must be a `tf.data.Dataset`, got list"),
    (labelled([0.0]).repeat(), "has no end"),
    (labelled([0.0]).map(lambda x, y: x), "must give pairs"),
  ],
)
def test_what_is_no_validation_data_is_refused(validation_data, message):
  with pytest.raises(ValueError, match=f"`validation_data` {message}"):
    run(validation_data=validation_data)


def batches(inputs=(1,), labels=(1,), *, dtype=tf.float32):
  """A batch of 4 zeros in these shapes."""
  zeros = tf.zeros([4, *inputs], dtype), tf.zeros([4, *labels])
  return tf.data.Dataset.from_tensors(zeros)


@pytest.mark.parametrize(
  "validation_data",
  [
    batches().unbatch(),
    batches([2]),
    batches([1, 1]),
    batches(dtype=tf.uint8),
    batches(labels=[2]),
    batches().map(lambda x, y: ({"x": x}, y)),
  ],
)
def test_validation_data_of_another_sort_are_refused(validation_data):
  data = make_pipeline().dataset()
  specs = data.element_spec, validation_data.element_spec
  wanted, given = (re.escape(str(spec)) for spec in specs)
  message = f"`validation_data` must give batches.* {wanted}, got {given}"
  with pytest.raises(ValueError, match=message):
    run(validation_data=validation_data)


@pytest.mark.parametrize(
  "validation_data",
  [
    batches().map(lambda x, y: (x, y, tf.ones([4]))),
    batches(dtype=tf.float64),
    batches(labels=[]),
    batches().unbatch().batch(3, drop_remainder=True),
  ],
)
def test_validation_data_may_differ_where_keras_casts(validation_data):
  assert "val_loss" in run(validation_data=validation_data).curve[0]


def test_validation_data_may_be_larger_if_the_model_takes_any_size():
  def build():
    layers = keras.layers.Dense(1), keras.layers.GlobalAveragePooling1D()
    return keras.Sequential([keras.Input((None, 1)), *layers])

  larger = batches([7, 1])
  result = run(batches([5, 1]), build_model=build, validation_data=larger)
  assert "val_loss" in result.curve[0]
  with pytest.raises(ValueError, match="`validation_data` must give batches"):
    run(larger, build_model=build, validation_data=batches([7, 2]))


def test_a_target_of_validation_needs_validation_data():
  stop = StopAtTarget("val_loss", 0.1)
  with pytest.raises(ValueError, match="'val_loss'.*without `validation_"):
    run(callbacks=[stop])

  class Validation(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
      logs["val_loss"] = 0.0

  assert run(callbacks=[Validation(), stop]).steps == 5


SPARSE = keras.losses.SparseCategoricalCrossentropy


@pytest.mark.parametrize(
  "labels, loss, got",
  [
    ([1, 2, 3], "sparse_categorical_crossentropy", "0 to 2.*got 1 to 3"),
    ([0, 1, -1], SPARSE(from_logits=True), "0 to 2.*got -1 to 1"),
    ([0, 1, 3], keras.losses.sparse_categorical_crossentropy, "got 0 to 3"),
    ([0, 1, 255, 3], SPARSE(ignore_class=255), "got 0 to 3"),
    ([0.0, 1.0, 2.0], "binary_crossentropy", "0 to 1.*got 0.0 to 2.0"),
    ([[0.0, 255.0, 0.0]], "categorical_crossentropy", "got 0.0 to 255.0"),
  ],
)
def test_labels_out_of_range_are_refused(labels, loss, got):
  right = [[0.0, 1.0, 0.0]] if isinstance(labels[0], list) else [0] * 4
  options = {"build_model": classifier, "loss": loss}
  with pytest.raises(ValueError, match=f"labels of `data` must be from.*{got}"):
    run(labelled(labels), **options)
  with pytest.raises(ValueError, match=f"labels of `validation_data`.*{got}"):
    run(labelled(right), validation_data=labelled(labels), **options)


def test_labels_that_a_loss_ignores_are_none():
  labels = [0, 255, 2, 255]
  loss = SPARSE(from_logits=True, ignore_class=255)
  assert run(labelled(labels), build_model=classifier, loss=loss).steps == 2


def test_a_label_far_down_the_data_is_found():
  labels = [0] * 9 * BATCH_SIZE + [3]
  with pytest.raises(ValueError, match="got 3 to 3 in one of its first batch"):
    run(
      labelled(labels),
      build_model=classifier,
      loss=SPARSE(from_logits=True),
    )


@pytest.mark.parametrize(
  "schedule, message",
  [
    (schedules.cosine(0.1, "3ep"), "`total`=15 steps.*over after 10"),
    (schedules.cosine(0.1, "9ba"), "over after 9 steps.*training after 10"),
    (schedules.cosine(0.1, scale=0.5), "over after 5 steps"),
    (schedules.multi_step(0.1, ["1ep", "3ep"]), "`milestones`=15 steps"),
    (schedules.step(0.1, "11ba"), "`every`=11 steps"),
    (schedules.exponential(0.1, "9ep", gamma=1, warmup="11ba"), "`warmup`=11"),
    (schedules.constant(0.1, warmup="20ba"), "`warmup`=20 steps"),
  ],
)
def test_a_schedule_of_another_length_is_refused(schedule, message):
  with pytest.raises(ValueError, match=message):
    run(learning_rate=schedule)
  ready = schedule.on(Timeline(steps_per_epoch=5, total="2ep"))
  for scaled in (lambda x: x, keras.mixed_precision.LossScaleOptimizer):
    with pytest.raises(ValueError, match=message):
      run(optimizer=scaled(keras.optimizers.SGD(ready)))


@pytest.mark.parametrize(
  "schedule",
  [
    schedules.exponential(0.1, "9ep", gamma=0.5),
    schedules.exponential(0.1, "9ep", gamma=0.5, warmup="1ep"),
    schedules.step(0.1, "2ep"),
    schedules.multi_step(0.1, ["1ep", "2ep"]),
    schedules.constant(0.1, warmup="2ep"),
  ],
)
def test_a_schedule_that_fits_the_training_is_accepted(schedule):
  assert run(learning_rate=schedule).steps == 10


@pytest.mark.parametrize(
  "built_in, precision",
  [("float32", "mixed_bfloat16"), ("mixed_bfloat16", "float32")],
)
def test_a_model_that_was_built_in_another_precision_is_refused(
  built_in, precision
):
  set_precision(built_in)
  model = build_model()
  set_precision("float32")
  with pytest.raises(ValueError, match="must build it anew"):
    run(build_model=lambda: model, precision=precision)


def test_layers_may_have_a_precision_of_their_own():
  def build():
    inputs = keras.Input((1,))
    outputs = keras.layers.Flatten()(inputs)
    return keras.Model(inputs, keras.layers.Dense(1, dtype="float32")(outputs))

  assert run(build_model=build, precision="mixed_bfloat16").steps == 10

  def build_with_a_low_layer():
    low = keras.layers.Dense(2, dtype="mixed_bfloat16")
    return keras.Sequential([keras.Input((1,)), low, keras.layers.Dense(1)])

  assert run(build_model=build_with_a_low_layer).steps == 10


READY = keras.optimizers.SGD()


@pytest.mark.parametrize(
  "changed, message",
  [
    ({"data": [1, 2]}, "`data` must be a `tfecho.Pipeline` or"),
    ({"length": "2"}, "`length` must be a number and a unit"),
    ({"length": "0ep"}, "`length` must be longer than 0"),
    ({"length": "1dur"}, "can't be a part of itself"),
    ({"epoch": "0ba"}, "`epoch` must be longer than 0"),
    ({"build_model": lambda: None}, "`build_model` must return a `keras.Mod"),
    ({"build_model": build_model()}, "`build_model` must be a function .*Sequ"),
    ({"layout": "nhwc"}, "`layout` must be None or one of"),
    ({"precision": "int8"}, "`precision` must be one of"),
    ({"optimizer": 0.1}, "`optimizer` must be a name, a function"),
    ({"optimizer": READY, "learning_rate": 0.1}, "has its learning rate alrea"),
    ({"strategy": "mirrored"}, "`strategy` must be a `tf.distribute.Strategy`"),
    ({"steps_per_execution": 3}, "`steps_per_execution`=3 must divide `length"),
    ({"steps_per_execution": 0}, "must be an int of at least 1, got 0"),
    ({"steps_per_execution": "auto"}, "must be known in advance.* got 'auto'"),
    ({"steps_per_execution": "5"}, "must be an int of at least 1, got '5'"),
    ({"epochs": 2}, 'does not take `epochs`: say `length="2ep"`'),
    ({"class_weight": {0: 2.0}}, "take `class_weight`: give `data` weights"),
    ({"lenght": "2ep"}, "neither `train` nor `Model.compile` takes `lenght`"),
  ],
)
def test_a_bad_argument_is_named(changed, message):
  with pytest.raises(ValueError, match=message):
    run(**changed)


@pytest.mark.parametrize(
  "changed, message",
  [
    ({"echo": {"echo_after": "decode", "factor": 2}}, "`echo` needs a `tfecho"),
    ({"epoch": "3ba"}, "has 5 batches, and an epoch 3 steps"),
  ],
)
def test_what_a_dataset_does_not_take_is_refused(changed, message):
  with pytest.raises(ValueError, match=message):
    run(make_pipeline().dataset(), **changed)


def test_epochs_have_one_master(native_ops):
  stats = tfecho.Stats()
  fresh_epochs = FreshEpochs(stats, fresh_examples=10)
  with pytest.raises(ValueError, match="must not contain `FreshEpochs`"):
    run(callbacks=[fresh_epochs])


# --- Strategies -------------------------------------------------------------

MIRRORED = """
import json
import keras, tensorflow as tf
import tfecho
from tfecho.training import (
  EchoFactorSchedule, StopAtTarget, Timeline, schedules, train
)

(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(
  cpu, [tf.config.LogicalDeviceConfiguration()] * 2
)

def build_model():
  return keras.Sequential(
    [keras.Input((1,)), keras.layers.Dense(1, kernel_initializer="zeros")]
  )

def decode(i):
  x = tf.cast(i, tf.float32)[None] / 8
  return x, 2 * x

def run(strategy):
  source = tf.data.Dataset.range(8)
  pipeline = tfecho.Pipeline(source, decode=decode, batch_size=8)
  factor = tfecho.factor_variable(2)
  stop = StopAtTarget("val_loss", 0.0)
  result = train(
    build_model,
    pipeline,
    echo={"echo_after": "batch", "factor": factor},
    timeline=Timeline(batch_size=8, fresh_examples=8, factor=2),
    validation_data=pipeline.dataset(),
    length="3ep",
    optimizer="sgd",
    learning_rate=schedules.linear(0.1),
    loss="mse",
    callbacks=[EchoFactorSchedule(factor, lambda step: 1 + step), stop],
    strategy=strategy,
    verbose=0,
  )
  return {
    "steps": [result.steps, stop.steps],
    "factor": float(factor),
    "weights": [w.tolist() for w in result.model.get_weights()],
    "val_loss": [row["val_loss"] for row in result.curve],
  }

mirrored = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
assert mirrored.num_replicas_in_sync == 2
print(json.dumps([run(None), run(mirrored)]))
"""


@needs_tensorflow
def test_under_a_strategy_an_optimizer_is_not_ready():
  with pytest.raises(ValueError, match="must be a name or a function that ma"):
    run(optimizer=READY, strategy=tf.distribute.get_strategy())


@needs_tensorflow
def test_two_replicas_train_as_one_device_does():
  done = forking.run("-c", MIRRORED)
  assert done.returncode == 0, done.stderr
  alone, mirrored = json.loads(done.stdout.splitlines()[-1])
  assert mirrored["steps"] == alone["steps"] == [6, 6]
  assert mirrored["factor"] == alone["factor"] == 6
  for value, expected in zip(mirrored["weights"], alone["weights"]):
    np.testing.assert_allclose(value, expected, rtol=1e-5)
  np.testing.assert_allclose(
    mirrored["val_loss"], alone["val_loss"], rtol=1e-5
  )


@needs_tensorflow
@pytest.mark.skipif(not hasattr(keras, "ops"), reason="Keras 2 can do it")
def test_several_workers_are_refused_where_fit_can_not_do_it():
  strategy = tf.distribute.MultiWorkerMirroredStrategy
  stand_in = strategy.__new__(strategy)  # Made, it would wait for the others.
  with pytest.raises(ValueError, match="of Keras 3 fails under a MultiWorker"):
    run(strategy=stand_in)


def test_another_backend_than_tensorflow_has_no_strategy(monkeypatch):
  monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
  with pytest.raises(ValueError, match="needs the TensorFlow backend"):
    run(strategy=tf.distribute.get_strategy())
