"""A name makes the optimizer that it says, on Keras 3 and on Keras 2.15."""

import functools
import importlib.util
import json
import os
import subprocess
import sys

import forking
import keras
import numpy as np
import optimizer_rules as rules
import pytest
import tensorflow as tf
from backends import needs_tensorflow
from optimizer_rules import trained, weights_of

from tfecho.training import (
  AveragedWeights,
  BackupAndRestore,
  check_precision,
  optimizers,
  schedules,
  train,
)
from tfecho.training.callbacks.averages import has_averages

KERAS_3 = hasattr(keras, "ops")
HAS_ADDONS = bool(importlib.util.find_spec("tensorflow_addons"))

needs_addons = pytest.mark.skipif(
  not HAS_ADDONS, reason="needs tensorflow-addons, and so TensorFlow 2.15"
)
needs_other_python = pytest.mark.skipif(
  "TFECHO_TEST_OTHER_PYTHON" not in os.environ,
  reason="TFECHO_TEST_OTHER_PYTHON names no Python with another TensorFlow",
)


def partial(rule, *arguments, **options):
  """A rule that is made anew for every weight."""
  return lambda: rule(
    *[argument() for argument in arguments if callable(argument)],
    *[argument for argument in arguments if not callable(argument)],
    **options,
  )


# name, options, rule, average
ON_BOTH = [
  ("sgd", {}, partial(rules.sgd)),
  ("sgd", {"momentum": 0.9}, partial(rules.sgd, momentum=0.9)),
  (
    "sgd",
    {"weight_decay": 0.3, "momentum": 0.9},
    partial(rules.decayed, partial(rules.sgd, momentum=0.9), 0.3),
  ),
  ("adam", {"beta_1": 0.8}, partial(rules.adam, beta_1=0.8)),
  ("adamw", {}, partial(rules.decayed, partial(rules.adam), 0.004)),
  (
    "AdamW",
    {"weight_decay": 0.3},
    partial(rules.decayed, partial(rules.adam), 0.3),
  ),
]
LAMB_ON_BOTH = [
  ("lamb", {}, partial(rules.lamb)),
  (
    "lamb",
    {"weight_decay": 0.3},
    partial(rules.decayed, partial(rules.lamb), 0.3),
  ),
  (
    "moving_average(lamb)",
    {"ema_momentum": 0.7},
    partial(rules.lamb),
    functools.partial(rules.moving_average, ema_momentum=0.7),
  ),
  (
    "moving_average(sgd)",
    {"weight_decay": 0.3},
    partial(rules.decayed, partial(rules.sgd), 0.3),
    rules.moving_average,
  ),
]
ONLY_ADDONS = [
  ("lazy_adam", {}, partial(rules.adam)),
  (
    "LazyAdam",
    {"weight_decay": 0.3},
    partial(rules.decayed, partial(rules.adam), 0.3),
  ),
  ("novograd", {"beta_2": 0.9}, partial(rules.novograd, beta_2=0.9)),
  (
    "novograd",
    {"weight_decay": 0.3},
    partial(rules.decayed, partial(rules.novograd), 0.3),
  ),
  (
    "addons_adamw",
    {"weight_decay": 0.03},
    partial(rules.decayed_by_addons, partial(rules.adam), 0.03),
  ),
  (
    "addons_sgdw",
    {"weight_decay": 0.03, "momentum": 0.9},
    partial(rules.decayed_by_addons, partial(rules.sgd, momentum=0.9), 0.03),
  ),
  ("lookahead(sgd)", {}, partial(rules.lookahead, partial(rules.sgd))),
  (
    "lookahead(adamw)",
    {"sync_period": 3, "slow_step_size": 0.8, "weight_decay": 0.3},
    partial(
      rules.lookahead,
      partial(rules.decayed, partial(rules.adam), 0.3),
      sync_period=3,
      slow_step_size=0.8,
    ),
  ),
  (
    "moving_average(lookahead(adam))",
    {"ema_momentum": 0.7},
    partial(rules.lookahead, partial(rules.adam)),
    functools.partial(rules.moving_average, ema_momentum=0.7),
  ),
  (
    "swa(lamb)",
    {"start_averaging": 2, "average_period": 3},
    partial(rules.lamb),
    functools.partial(rules.swa, start_averaging=2, average_period=3),
  ),
  (
    "SWA(Lookahead(NovoGrad))",
    {"average_period": 4, "sync_period": 5},
    partial(rules.lookahead, partial(rules.novograd), sync_period=5),
    functools.partial(rules.swa, average_period=4),
  ),
]
KERAS_3_OR_ADDONS = LAMB_ON_BOTH if KERAS_3 or HAS_ADDONS else []
HERE = [*ON_BOTH, *KERAS_3_OR_ADDONS, *(ONLY_ADDONS if HAS_ADDONS else [])]


def ids(cases):
  return [" ".join([case[0], *case[1]]) for case in cases]


# --- What it does -----------------------------------------------------------


@pytest.mark.parametrize("case", HERE, ids=ids(HERE))
def test_a_training_follows_the_rule_of_the_name(case):
  """Under a schedule that rises and falls."""
  name, options, *rule = case
  assert_close(weights_of(name, options), rules.expected(*rule))


@needs_other_python
def test_the_other_keras_trains_the_same_weights_by_the_same_names():
  cases = [(name, options) for name, options, *_ in [*ON_BOTH, *LAMB_ON_BOTH]]
  other = os.environ["TFECHO_TEST_OTHER_PYTHON"]
  result = subprocess.run(
    [other, "-c", TRAIN_ALL, json.dumps(cases)],
    env={**os.environ, "TFECHO_TESTS": os.path.dirname(rules.__file__)},
    stdout=subprocess.PIPE,
    text=True,
    check=True,
  )
  answer = json.loads(result.stdout.splitlines()[-1])
  assert answer["is_keras_3"] != KERAS_3
  for (name, options), theirs in zip(cases, answer["weights"]):
    assert_close(weights_of(name, options), [np.array(w) for w in theirs])


TRAIN_ALL = """
import json, os, sys
sys.path.append(os.environ["TFECHO_TESTS"])
import keras
from optimizer_rules import weights_of
print(json.dumps({
  "is_keras_3": hasattr(keras, "ops"),
  "weights": [
    [weight.tolist() for weight in weights_of(name, options)]
    for name, options in json.loads(sys.argv[1])
  ],
}))
"""


def test_train_takes_a_name():
  result = train(
    rules.linear_model,
    rules.dataset(),
    length="1ep",
    optimizer="adamw",
    learning_rate=rules.RATE,
    loss="mse",
    verbose=0,
  )
  assert_close(result.model.get_weights(), weights_of("adamw"))


def test_without_a_learning_rate_it_is_the_default():
  made = optimizers.get("sgd")
  assert float(made.learning_rate) == pytest.approx(0.01)


def test_every_optimizer_of_keras_has_its_name():
  for name in ("rmsprop", "Nadam", "ADAGRAD", "adadelta", "adamax", "ftrl"):
    made = optimizers.get(name, learning_rate=0.5)
    assert isinstance(made, keras.optimizers.Optimizer)
    assert type(made).__name__.lower() == name.lower()
    assert float(made.learning_rate) == 0.5
    assert name.lower() in optimizers.names()


# --- tensorflow-addons ------------------------------------------------------


@needs_addons
def test_the_decay_of_the_lamb_of_addons_is_another_one():
  """Inside of the ratio of norms, as in the paper: why `lamb` has Keras'."""
  import tensorflow_addons as tfa

  def addons(decay):
    make = functools.partial(
      tfa.optimizers.LAMB, epsilon=1e-7, weight_decay=decay
    )
    model = train(
      rules.linear_model,
      rules.dataset(),
      length="1ep",
      optimizer=make,
      learning_rate=rules.RATE,
      loss="mse",
      verbose=0,
    ).model
    return model.get_weights()

  assert_close(addons(0.0), weights_of("lamb"))
  inside = rules.expected(partial(rules.lamb, decay_in_ratio=0.3))
  assert_close(addons(0.3), inside)
  ours = weights_of("lamb", {"weight_decay": 0.3})
  assert np.abs(ours[0] - inside[0]).max() > 0.05


@needs_addons
def test_gradients_are_clipped_before_they_reach_what_is_inside():
  options = {"clipnorm": 0.1, "sync_period": 1_000}
  clipped = weights_of("lookahead(sgd)", options)
  assert_close(clipped, weights_of("sgd", {"clipnorm": 0.1}))
  assert np.abs(clipped[0] - weights_of("sgd")[0]).max() > 0.01


class TestRows:
  """Gradients of an embedding, which are those of some rows."""

  @needs_addons
  @pytest.mark.parametrize("base", ["sgd", "adam", "lamb"])
  def test_what_is_wrapped_trains_as_what_is_not(self, base):
    options = {"weight_decay": 0.1}
    plain = self.table(base, options)
    wrapped = self.table(f"lookahead({base})", {"sync_period": 99, **options})
    np.testing.assert_allclose(wrapped, plain, rtol=1e-5, atol=1e-6)

  @needs_addons
  def test_lazy_adam_lets_rows_without_a_gradient_rest(self):
    adam, lazy = self.table("adam"), self.table("lazy_adam")
    np.testing.assert_allclose(lazy[2:], adam[2:], rtol=1e-6)  # never seen
    np.testing.assert_allclose(lazy[1], adam[1], rtol=1e-6)  # seen at last
    assert np.abs(lazy[0] - adam[0]).max() > 0.01  # seen at first

  def table(self, name, options=None):
    """A table of which two rows are used, one after the other."""
    model = keras.Sequential([
      keras.Input((2,), dtype="int32"),
      keras.layers.Embedding(4, 3),
    ])
    model.set_weights([np.arange(12.0).reshape(4, 3)])
    made = optimizers.get(name, learning_rate=0.1, **(options or {}))
    model.compile(made, "mse", jit_compile=False)
    rows = np.array([[0, 0], [1, 1]], np.int32)
    targets = np.ones((2, 2, 3), np.float32)
    model.fit(rows, targets, batch_size=1, shuffle=False, verbose=0)
    return model.get_weights()[0]


IMPORTED = """
import json, sys
from tfecho.training import optimizers, train
before = "tensorflow_addons" in sys.modules
for name in ("sgd", "adam", "adamw", "rmsprop"):
  optimizers.get(name)
optimizers.names()
try:
  optimizers.get("nothing")
except ValueError:
  pass
after = "tensorflow_addons" in sys.modules
try:
  optimizers.get("novograd")
except ValueError:
  pass
print(json.dumps([before, after, "tensorflow_addons" in sys.modules]))
"""


def test_addons_are_imported_only_for_a_name_of_theirs():
  result = subprocess.run(
    [sys.executable, "-W", "error::UserWarning", "-c", IMPORTED],
    stdout=subprocess.PIPE,
    check=True,
  )
  assert json.loads(result.stdout) == [False, False, HAS_ADDONS]


@pytest.mark.parametrize("name", sorted({case[0] for case in ONLY_ADDONS}))
def test_a_name_that_only_addons_have_says_how_to_get_it(name, monkeypatch):
  monkeypatch.setitem(sys.modules, "tensorflow_addons", None)  # as if not here
  monkeypatch.delitem(sys.modules, "tfecho.training.addons", raising=False)
  with pytest.raises(ValueError) as error:
    optimizers.get(name, learning_rate=0.1)
  message = str(error.value)
  assert repr(name) in message
  assert "`pip install tfecho[addons]`" in message
  assert "Python 3.9, 3.10 or 3.11" in message and "2.15.1" in message
  here = f"TensorFlow {tf.__version__} with Keras {keras.__version__}"
  assert here in message


# --- Averages ---------------------------------------------------------------

AVERAGES = [
  *([("moving_average(adamw)", {})] if KERAS_3 or HAS_ADDONS else []),
  *([("swa(adamw)", {"average_period": 3})] if HAS_ADDONS else []),
]


@pytest.mark.parametrize("name, options", AVERAGES)
class TestAverages:
  """Where weights are averaged."""

  def test_averages_are_validated_and_training_does_not_notice(
    self, name, options
  ):
    validated = trained(name, options, validation_data=rules.dataset())
    assert_same(validated.model.get_weights(), weights_of(name, options))
    loss = validated.model.evaluate(rules.dataset(), verbose=0)
    assert validated.curve[-1]["val_loss"] == pytest.approx(loss, rel=1e-6)

  def test_the_callback_does_it_in_a_fit_of_ones_own(self, name, options):
    model = rules.linear_model()
    made = optimizers.get(name, learning_rate=rules.RATE, **options)
    model.compile(made, "mse")
    data = rules.dataset()
    callbacks = [AveragedWeights()]
    model.fit(data, verbose=0, validation_data=data, callbacks=callbacks)
    assert_same(model.get_weights(), weights_of(name, options))

  def test_they_are_found_where_the_loss_is_scaled(self, name, options):
    scaled = weights_of(name, options, precision="mixed_float16")
    for weight, average in zip(scaled, weights_of(name, options)):
      np.testing.assert_allclose(weight, average, rtol=0.02, atol=0.01)


def test_averaged_weights_need_averages():
  model = rules.linear_model()
  model.compile(keras.optimizers.SGD(), "mse")
  with pytest.raises(ValueError, match="`AveragedWeights` .* got SGD"):
    model.fit(rules.dataset(), verbose=0, callbacks=[AveragedWeights()])


@needs_addons
def test_averages_that_have_not_begun_leave_the_weights_alone():
  late = weights_of("swa(sgd)", {"start_averaging": 100})
  assert_close(late, weights_of("sgd"))


# --- Together with the rest -------------------------------------------------


@pytest.mark.parametrize(
  "name",
  [
    "sgd",
    *(["lamb"] if KERAS_3 or HAS_ADDONS else []),
    *(["novograd", "lookahead(lazy_adam)"] if HAS_ADDONS else []),
  ],
)
def test_the_loss_is_scaled_for_float16(name):
  result = trained(name, precision="mixed_float16")
  check_precision(result.model)
  scaled = result.model.optimizer
  assert isinstance(scaled, keras.mixed_precision.LossScaleOptimizer)
  assert int(scaled.iterations) == rules.STEPS
  for weight, exact in zip(result.model.get_weights(), weights_of(name)):
    np.testing.assert_allclose(weight, exact, rtol=0.02, atol=0.01)


REPLICAS = """
import json, sys
import tensorflow as tf
(cpu,) = tf.config.list_physical_devices("CPU")
two = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(cpu, two)
import numpy as np
import optimizer_rules as rules
differences = []
for name in json.loads(sys.argv[1]):
  options = {"weight_decay": 0.3}
  strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
  apart = rules.weights_of(
    name, options, strategy=strategy, validation_data=rules.dataset()
  )
  pairs = zip(apart, rules.weights_of(name, options))
  differences.append(max(float(np.abs(a - b).max()) for a, b in pairs))
print(json.dumps(differences))
"""


@needs_tensorflow
def test_two_replicas_train_as_one():
  names = ["adamw"]
  if KERAS_3 or HAS_ADDONS:
    names.append("moving_average(lamb)")
  if HAS_ADDONS:
    names += ["lazy_adam", "novograd", "swa(lookahead(sgd))"]
  result = forking.run("-c", REPLICAS, json.dumps(names))
  assert result.returncode == 0, result.stderr
  assert json.loads(result.stdout.splitlines()[-1]) == pytest.approx(
    [0.0] * len(names), abs=2e-6
  )


class Interruption(keras.callbacks.Callback):
  """Ends a training behind a step."""

  def on_train_batch_end(self, batch, logs=None):
    if batch + 1 == 9:
      raise InterruptedError


RESUMED = [
  ("sgd", {"momentum": 0.9}),
  *([("moving_average(lamb)", {})] if KERAS_3 or HAS_ADDONS else []),
  *(
    [
      ("novograd", {}),
      ("lookahead(lazy_adam)", {"weight_decay": 0.1}),
      ("swa(lookahead(adamw))", {"average_period": 3}),
      ("addons_adamw", {"weight_decay": 0.01}),
    ]
    if HAS_ADDONS
    else []
  ),
]


@needs_tensorflow
@pytest.mark.parametrize(
  "name, options, precision",
  [
    *((*case, "float32") for case in RESUMED),
    *((*case, "mixed_float16") for case in RESUMED[1::3]),
  ],
)
def test_an_interrupted_training_is_resumed_exactly(
  name, options, precision, tmp_path
):
  def go(directory, *callbacks):
    backup = BackupAndRestore(directory, data=rules.dataset(), every_steps=4)
    callbacks = [*callbacks, backup]
    return weights_of(
      name,
      options,
      data=backup.data,
      callbacks=callbacks,
      precision=precision,
    )

  whole = go(tmp_path / "whole")
  with pytest.raises(InterruptedError):
    go(tmp_path / "parts", Interruption())
  assert_same(go(tmp_path / "parts"), whole)


ONE_OF_EACH = list({case[0]: case[1] for case in HERE}.items())


@pytest.mark.parametrize("name, options", ONE_OF_EACH, ids=ids(ONE_OF_EACH))
def test_it_comes_back_with_a_saved_model(name, options, tmp_path):
  model = rules.linear_model()
  made = optimizers.get(name, learning_rate=rules.RATE, **options)
  model.compile(made, "mse")
  # Without it, `fit` of Keras on JAX fails where it goes on behind averages.
  averaged = [AveragedWeights()] if has_averages(model) else []
  model.fit(rules.dataset(), verbose=0, callbacks=averaged)
  model.save(tmp_path / "model.keras")
  loaded = keras.models.load_model(tmp_path / "model.keras")
  assert type(loaded.optimizer) is type(model.optimizer)
  config = model.optimizer.get_config()
  assert loaded.optimizer.get_config() == config
  if not isinstance(model.optimizer, keras.optimizers.Optimizer):
    return  # Keras stores no variables of legacy optimizers.
  for one in (model, loaded):
    one.fit(rules.dataset(), verbose=0)
  assert_same(loaded.get_weights(), model.get_weights())


# --- What is refused --------------------------------------------------------


@pytest.mark.parametrize(
  "name, message",
  [
    ("adamm", r"must be one of \[.*'adam'.*'swa\(\.\.\.\)'\], got 'adamm'"),
    ("", "got ''"),
    (None, "got None"),
    ("lookahead", "got 'lookahead'"),
    ("lookahead(", r"got 'lookahead\('"),
    ("lookahead()", r"got 'lookahead\(\)'"),
    ("adam(sgd)", r"got 'adam\(sgd\)'"),
    ("lookahead(sgd))", r"got 'lookahead\(sgd\)\)'"),
    ("lookahead(rmsprop)", r"'lookahead' takes one of .*'adamw'"),
    ("lookahead(swa(sgd))", "must have an average outermost"),
    ("swa(moving_average(sgd))", "must have an average outermost"),
    ("lookahead(lookahead(sgd))", "everything once"),
  ],
)
def test_a_name_that_is_none_is_refused(name, message):
  with pytest.raises(ValueError, match=f"`optimizer` .*{message}"):
    optimizers.get(name)


@pytest.mark.parametrize(
  "options, message",
  [
    ({"weight_decay": -0.1}, "`weight_decay` must be a number from 0 on, got"),
    ({"weight_decay": "0.1"}, "`weight_decay` must be .* got '0.1'"),
    ({"weight_decay": True}, "`weight_decay` must be .* got True"),
    ({"learning_rate": -1}, "`learning_rate` must be .* got -1"),
    ({"sync_period": 5}, "`optimizer` 'sgd': .*sync_period"),
    ({"speed": 5}, "`optimizer` 'sgd': .*speed"),
  ],
)
def test_an_option_that_makes_no_sense_is_refused(options, message):
  with pytest.raises(ValueError, match=message):
    optimizers.get("sgd", **options)


@needs_addons
@pytest.mark.parametrize(
  "options", [{"ema_momentum": 0.9}, {"sync_period": "six"}, {"speed": 5}]
)
def test_an_option_that_no_part_takes_is_refused(options):
  (option,) = options
  with pytest.raises(ValueError, match=f"`optimizer` 'look.*{option}"):
    optimizers.get("lookahead(adam)", **options)


@needs_addons
def test_a_schedule_that_is_longer_than_the_training_is_found_inside():
  rate = schedules.linear(0.1, "1_000ba", warmup="900ba")
  make = functools.partial(optimizers.get, "lookahead(sgd)", learning_rate=rate)
  with pytest.raises(ValueError, match="training is over after 14"):
    train(
      rules.linear_model,
      rules.dataset(),
      length="1ep",
      optimizer=make,
      loss="mse",
    )


def assert_close(weights, others):
  for weight, other in zip(weights, others):
    np.testing.assert_allclose(weight, other, rtol=2e-5, atol=2e-6)


def assert_same(weights, others):
  for weight, other in zip(weights, others):
    np.testing.assert_array_equal(weight, other)
