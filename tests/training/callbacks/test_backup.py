"""A training that was interrupted ends as one that was not."""

import contextlib
import functools
import pathlib
import signal

import forking
import keras
import numpy as np
import pytest
import resumable_training as training
import tensorflow as tf
from backends import needs_tensorflow
from resumable_training import EPOCHS, EVERY_STEPS, STEPS_PER_EPOCH

import tfecho
from tfecho.training import BackupAndRestore, EchoFactorSchedule
from tfecho.training.callbacks.backup_folder import BackupFolder

pytestmark = needs_tensorflow  # Others are refused: test_other_backend.py.

STEPS = EPOCHS * STEPS_PER_EPOCH


class Interruption(Exception):
  """What ends a training from within."""


def interrupted_at(step, seen):
  """A `tell` that keeps what it is told, and fails in the midst of a step."""

  def tell(batch):
    seen.append(batch.tolist())
    if len(seen) == step:
      raise Interruption

  return tell


def run(
  make_data, directory, *, interrupt=None, compiled=None, fit=None, **options
):
  """Trains; returns the batches, and the weights if it got to the end."""
  seen = []
  data, fit_options = make_data()
  fit_options = {**fit_options, **(fit or {})}
  model = training.make_model(interrupted_at(interrupt, seen), **compiled or {})
  backup = BackupAndRestore(directory, data=data, **options)
  if interrupt is None:
    training.train(model, backup, **fit_options)
    return seen, training.flat_weights(model)
  with pytest.raises(tf.errors.OpError, match="Interruption"):
    training.train(model, backup, **fit_options)
  return seen, None


def assert_resumes(make_data, directory, *, interrupt, whole=None, **options):
  """Batches and weights are those of a training without interruption."""
  expected, weights = whole or run(make_data, directory / "whole", **options)
  parts = directory / "parts"
  before, _ = run(make_data, parts, interrupt=interrupt, **options)
  done = steps_done(parts)
  after, weights_after = run(make_data, parts, **options)
  assert len(expected) == STEPS
  assert before[:done] + after == expected
  assert before[done:] == after[: len(before) - done]
  assert weights_after == weights
  return done


def steps_done(directory):
  """Steps that the newest backup contains."""
  position = BackupFolder(pathlib.Path(directory)).position()
  return position.epoch * STEPS_PER_EPOCH + position.step


# --- Killed -----------------------------------------------------------------


class Process:
  """A process that trains, of which every step is in our hand."""

  def __init__(self, *arguments):
    self._connection, theirs = forking.CONTEXT.Pipe()
    self._process = forking.CONTEXT.Process(
      target=training.main, args=(theirs, *arguments)
    )
    self._process.start()
    theirs.close()
    self.told = []

  def step(self):
    """Hears what the next step tells; returns False if there is nothing."""
    # A reset if it ended without having read the last answer.
    with contextlib.suppress(EOFError, ConnectionResetError):
      self.told.append(self._connection.recv())
      return True
    return False

  def go_on(self):
    """Lets the present step end."""
    with contextlib.suppress(BrokenPipeError):
      self._connection.send("go on")

  def run(self):
    """Lets it run to its end, and returns how it ended."""
    while self.step():
      self.go_on()
    return self._end()

  def kill(self):
    """Kills it, and returns how it ended."""
    self._process.kill()
    return self._end()

  def _end(self):
    self._connection.close()
    self._process.join()
    return self._process.exitcode


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
  """Returns what a process without interruption tells: steps, and weights."""

  @functools.lru_cache
  def told(implementation):
    process = Process(tmp_path_factory.mktemp("whole"), implementation)
    assert process.run() == 0
    assert len(process.told) == STEPS + 1
    return process.told

  return told


def test_a_process_that_is_killed_in_mid_epoch_is_resumed_exactly(
  tmp_path, implementation, uninterrupted
):
  killed = Process(tmp_path, implementation)
  for _ in range(17):
    assert killed.step()
    killed.go_on()
  assert killed.step()
  assert killed.kill() == -signal.SIGKILL  # in the midst of step 18
  done = steps_done(tmp_path)
  assert done == 16  # an epoch and twice 3 steps
  resumed = Process(tmp_path, implementation)
  assert resumed.run() == 0
  assert killed.told[:done] + resumed.told == uninterrupted(implementation)
  assert killed.told[done:] == resumed.told[:2]


@pytest.mark.parametrize("moment", training.MOMENTS)
def test_a_process_that_is_killed_while_it_writes_a_backup_is_resumed_exactly(
  tmp_path, uninterrupted, moment
):
  killed = Process(tmp_path, "graph", moment)
  assert killed.run() == -signal.SIGKILL
  done = steps_done(tmp_path)
  assert done == (9 if moment == "it has a name" else 6)
  resumed = Process(tmp_path, "graph")
  assert resumed.run() == 0
  assert killed.told[:done] + resumed.told == uninterrupted("graph")


# --- Interrupted anywhere, with any data ------------------------------------


@pytest.fixture(scope="module")
def pipeline_data(implementation):
  """Makes data, and what `fit` must be told about it."""
  return lambda: training.make_data(implementation)


@pytest.fixture(scope="module")
def whole(pipeline_data, tmp_path_factory):
  """Batches and weights of a training without interruption."""
  return run(pipeline_data, tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize(
  "interrupt, every_steps, done",
  [
    (1, None, 0),  # before there is more than the very first backup
    (10, None, 0),  # the last step of an epoch
    (11, None, 10),  # the first one
    (30, None, 20),
    (17, 1, 16),
    (20, 7, 17),  # the end of an epoch starts the count anew
  ],
)
def test_wherever_it_is_interrupted_it_is_resumed_exactly(
  pipeline_data, whole, tmp_path, interrupt, every_steps, done
):
  assert done == assert_resumes(
    pipeline_data,
    tmp_path,
    whole=whole,
    interrupt=interrupt,
    every_steps=every_steps,
  )


def test_it_may_be_interrupted_again_and_again(pipeline_data, whole, tmp_path):
  first, _ = run(pipeline_data, tmp_path, interrupt=8, every_steps=3)
  second, _ = run(pipeline_data, tmp_path, interrupt=3, every_steps=3)
  third, _ = run(pipeline_data, tmp_path, interrupt=9, every_steps=3)
  last, weights = run(pipeline_data, tmp_path, every_steps=3)
  # 6 steps, none, and from there to the middle of the second epoch.
  assert (first[:6] + third[:7] + last, weights) == whole
  assert first[6:] + second[2:] == third[:3]


@pytest.mark.parametrize("told", ["first", "last"])
def test_executions_of_several_steps_are_resumed_exactly(
  pipeline_data, tmp_path, monkeypatch, told
):
  """Whichever of its steps `fit` says at the end: in Keras 3.10 the first."""
  on_train_batch_end = BackupAndRestore.on_train_batch_end

  def end(backup, batch, logs=None):
    first = batch // 5 * 5
    on_train_batch_end(backup, first if told == "first" else first + 4, logs)

  monkeypatch.setattr(BackupAndRestore, "on_train_batch_end", end)
  options = {"compiled": {"steps_per_execution": 5}, "every_steps": 5}
  assert 15 == assert_resumes(pipeline_data, tmp_path, interrupt=17, **options)


@pytest.mark.parametrize(
  "echo_after, factor",
  [(None, 1), ("decode", 2.5), ("augment", 2), ("batch", 2)],
)
def test_passes_over_the_data_are_resumed_exactly(
  native_ops, tmp_path, echo_after, factor
):
  """With an echo anywhere, each pass in an order of its own."""
  echo = {"echo_after": echo_after, "factor": factor} if echo_after else {}

  def make_data():
    return training.make_pipeline().dataset(**echo), {}

  whole, parts = tmp_path / "whole", tmp_path / "parts"
  expected, weights = run(make_data, whole)
  steps = len(expected) // EPOCHS
  before, _ = run(make_data, parts, interrupt=2 * steps, every_steps=2)
  position = BackupFolder(parts).position()
  after, weights_after = run(make_data, parts)
  done = position.epoch * steps + position.step
  assert before[:done] + after == expected
  assert weights_after == weights


@pytest.mark.parametrize("echo_after", ["decode", "batch"])
def test_endless_data_is_resumed_exactly(implementation, tmp_path, echo_after):
  echo = {
    "echo_after": echo_after,
    "factor": 2.5,
    "rounding": "random",
    "implementation": implementation,
  }

  def make_data():
    data = training.make_pipeline().dataset(repeat=True, **echo)
    return data, {"steps_per_epoch": STEPS_PER_EPOCH}

  assert_resumes(make_data, tmp_path, interrupt=17, every_steps=3)


def test_a_factor_that_changes_is_resumed_exactly(native_ops, tmp_path):
  """Its value is no part of the iterator's state."""

  def run_with_factor(directory, interrupt=None):
    factor = tfecho.factor_variable(3)
    data = training.make_pipeline().dataset(echo_after="decode", factor=factor)
    falling = EchoFactorSchedule(factor, lambda step: max(1, 3 - step // 8))
    fit = {"steps_per_epoch": STEPS_PER_EPOCH, "callbacks": [falling]}
    return run(
      lambda: (data, fit),
      directory,
      interrupt=interrupt,
      every_steps=3,
      variables={"factor": factor},
    )

  expected, weights = run_with_factor(tmp_path / "whole")
  before, _ = run_with_factor(tmp_path / "parts", interrupt=18)
  after, weights_after = run_with_factor(tmp_path / "parts")
  assert before[:16] + after == expected
  assert weights_after == weights


def test_an_interruption_at_the_very_end_leaves_nothing_to_do(
  pipeline_data, tmp_path
):
  class AtTheEnd(keras.callbacks.Callback):
    def on_train_end(self, logs=None):
      raise Interruption

  seen = []
  model = training.make_model(interrupted_at(None, seen))
  data, fit = pipeline_data()
  backup = BackupAndRestore(tmp_path, data=data)
  with pytest.raises(Interruption):
    training.train(model, backup, callbacks=[AtTheEnd()], **fit)
  data, fit = pipeline_data()
  again = BackupAndRestore(tmp_path, data=data)
  assert again.initial_epoch == EPOCHS
  model_again = training.make_model(interrupted_at(None, seen))
  training.train(model_again, again, **fit)
  assert len(seen) == STEPS
  assert training.flat_weights(model_again) == training.flat_weights(model)


# --- Around a training ------------------------------------------------------


def test_a_training_that_ends_leaves_no_backup(pipeline_data, tmp_path):
  run(pipeline_data, tmp_path, every_steps=EVERY_STEPS)
  assert list(tmp_path.iterdir()) == []
  data, _ = pipeline_data()
  assert BackupAndRestore(tmp_path, data=data).initial_epoch == 0


def test_there_is_one_backup_at_a_time(pipeline_data, tmp_path):
  found = []

  class Look(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
      found.append(len(list(tmp_path.iterdir())))

  run(pipeline_data, tmp_path, every_steps=2, fit={"callbacks": [Look()]})
  assert found == [1] * STEPS


def test_without_interruption_epochs_are_passes_over_the_data(
  native_ops, tmp_path
):
  data, _ = training.make_data("native")
  expected = [
    batch.numpy().tolist() for _ in range(EPOCHS) for batch, _ in data
  ]
  seen, _ = run(lambda: training.make_data("native"), tmp_path)
  assert seen == expected


def test_the_learning_rate_that_a_plateau_left_is_resumed(
  pipeline_data, tmp_path
):
  """The backup stands last, and sees what others did."""

  class Halve(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
      optimizer = self.model.optimizer
      optimizer.learning_rate = float(optimizer.learning_rate) / 2

  options = {"every_steps": 3, "fit": {"callbacks": [Halve()]}}
  assert_resumes(pipeline_data, tmp_path, interrupt=17, **options)


def test_an_epoch_that_is_resumed_is_validated_and_others_may_stop_after_it(
  pipeline_data, tmp_path
):
  run(pipeline_data, tmp_path, interrupt=17, every_steps=3)
  model = training.make_model(interrupted_at(None, []))
  data, fit = pipeline_data()
  backup = BackupAndRestore(tmp_path, data=data)
  validation = (np.ones((2, 2)), np.ones((2, 1)))
  stop = keras.callbacks.EarlyStopping("val_loss", min_delta=1e9, patience=1)
  history = training.train(
    model, backup, callbacks=[stop], validation_data=validation, **fit
  )
  assert history.epoch == [1, 2]
  assert len(history.history["val_loss"]) == 2


# --- Mistakes ---------------------------------------------------------------


@pytest.fixture
def plain_data():
  """10 batches, without an echo."""
  ones = np.ones((10, 2), np.float32)
  return tf.data.Dataset.from_tensor_slices((ones, ones[:, :1])).batch(1)


def fit(backup, data=None, *, compiled=None, **options):
  model = training.make_model(lambda batch: None, **compiled or {})
  data = backup.data if data is None else data
  return model.fit(data, verbose=0, callbacks=[backup], **options)


def test_a_distribution_strategy_is_refused(tmp_path, plain_data):
  with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
    model = training.make_model(lambda batch: None)
  backup = BackupAndRestore(tmp_path, data=plain_data)
  with pytest.raises(ValueError, match="without a distribution strategy"):
    model.fit(backup.data, verbose=0, callbacks=[backup])


def test_other_data_than_that_of_the_backup_is_refused(tmp_path, plain_data):
  backup = BackupAndRestore(tmp_path, data=plain_data)
  with pytest.raises(ValueError, match="must train on `backup.data` itself"):
    fit(backup, plain_data)
  with pytest.raises(ValueError, match=r"data=train.apply\(tfecho.monitor\("):
    fit(backup, backup.data.prefetch(1))
  with pytest.raises(ValueError, match="Nor .* with `class_weight`"):
    fit(backup, class_weight={0: 1.0, 1: 2.0})
  assert list(tmp_path.iterdir()) == []


def test_what_was_refused_leaves_the_backup_that_is_there(
  pipeline_data, tmp_path
):
  run(pipeline_data, tmp_path, interrupt=17)
  before = list(tmp_path.rglob("*"))
  data, options = pipeline_data()
  backup = BackupAndRestore(tmp_path, data=data)
  with pytest.raises(ValueError, match="must train on `backup.data` itself"):
    fit(backup, data, epochs=EPOCHS, initial_epoch=1, **options)
  assert list(tmp_path.rglob("*")) == before


def test_an_epoch_of_unknown_length_is_refused(tmp_path, plain_data):
  data = plain_data.filter(lambda x, y: True)
  backup = BackupAndRestore(tmp_path, data=data)
  with pytest.raises(ValueError, match="must have a known cardinality"):
    fit(backup)


def test_an_epoch_of_another_length_than_the_data_is_refused(
  tmp_path, plain_data
):
  backup = BackupAndRestore(tmp_path, data=plain_data)
  with pytest.raises(ValueError, match="has 10 batches, .* has 4 steps"):
    fit(backup, steps_per_epoch=4)


def test_executions_that_do_not_fill_an_epoch_are_refused(tmp_path, plain_data):
  backup = BackupAndRestore(tmp_path, data=plain_data)
  with pytest.raises(ValueError, match="`steps_per_execution`=4 must divide"):
    fit(backup, compiled={"steps_per_execution": 4})


def test_data_that_can_not_be_saved_is_refused(tmp_path, plain_data):
  stateful = [
    plain_data.map(lambda x, y: (x + tf.random.uniform([]), y)),
    plain_data.map(lambda x, y: (tf.py_function(abs, [x], tf.float32), y)),
  ]
  for data in stateful:
    said = "position in `data` can't be saved.*stateless.*named `seed`"
    with pytest.raises(ValueError, match=said):
      BackupAndRestore(tmp_path, data=data)


def test_a_model_that_is_not_built_is_refused(tmp_path, plain_data):
  model = keras.Sequential([keras.layers.Dense(1)])
  model.compile(loss="mse")
  backup = BackupAndRestore(tmp_path, data=plain_data)
  with pytest.raises(ValueError, match="model must be built"):
    model.fit(backup.data, verbose=0, callbacks=[backup])


def test_the_wrong_epoch_is_refused(pipeline_data, tmp_path):
  run(pipeline_data, tmp_path, interrupt=17)
  data, options = pipeline_data()
  backup = BackupAndRestore(tmp_path, data=data)
  with pytest.raises(ValueError, match="epoch 1, and `fit` starts with"):
    fit(backup, epochs=EPOCHS, **options)


def test_the_backup_of_another_model_is_refused(pipeline_data, tmp_path):
  run(pipeline_data, tmp_path, interrupt=17)
  model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
  model.compile(loss="mse")
  data, options = pipeline_data()
  backup = BackupAndRestore(tmp_path, data=data)
  with pytest.raises(ValueError, match="is not one of this model"):
    training.train(model, backup, **options)


def test_an_epoch_that_is_told_its_length_twice_is_refused(
  native_ops, tmp_path
):
  """Keras 3 would go on with the iterator that has come to its end."""
  make_data = lambda: training.make_data("native")  # noqa: E731
  run(make_data, tmp_path, interrupt=17, every_steps=3)
  if hasattr(keras, "ops"):
    with pytest.raises(ValueError, match="if the data has an end"):
      run(make_data, tmp_path, fit={"steps_per_epoch": STEPS_PER_EPOCH})


@pytest.mark.parametrize(
  "options, message",
  [
    ({"data": [1, 2]}, "`data` must be a `tf.data.Dataset`, got list"),
    ({"every_steps": 0}, "`every_steps` must be an int of at least 1, got 0"),
  ],
)
def test_a_bad_argument_is_named(tmp_path, plain_data, options, message):
  with pytest.raises(ValueError, match=message):
    BackupAndRestore(tmp_path, **{"data": plain_data, **options})
