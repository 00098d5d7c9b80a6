"""Schedules against their formulas, at every step, and inside of Keras."""

import math
import os
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfecho.training import Timeline, schedules

KERAS_3 = hasattr(keras, "ops")

# Beyond the ends of all warm-ups, cycles and totals below.
STEPS = 150


def rates(schedule, steps=STEPS):
  """The rates of all steps, asked for at once, which is faster."""
  return np.asarray(schedule(np.arange(steps))).tolist()


def assert_follows(schedule, formula):
  """The rate is that of `formula` at every step."""
  expected = [formula(step) for step in range(STEPS)]
  np.testing.assert_allclose(rates(schedule), expected, rtol=2e-6, atol=2e-7)


def warmed_up(warmup, formula, peak=0.5):
  """`formula` behind a straight line to `peak`, for plain numbers."""
  return lambda t: peak * t / warmup if t < warmup else formula(t)


def progress(step, warmup, total):
  """Part of the way from the warm-up to the total, for plain numbers."""
  return 1 if step >= total else (step - warmup) / (total - warmup)


# --- Formulas ---------------------------------------------------------------

WARMUPS = pytest.mark.parametrize("warmup", [0, 1, 7, 100])
ENDS = pytest.mark.parametrize("end", [0.0, 0.01])


@WARMUPS
def test_constant(warmup):
  schedule = schedules.constant(0.5, warmup=f"{warmup}ba")
  assert_follows(schedule, warmed_up(warmup, lambda t: 0.5))


@WARMUPS
@pytest.mark.parametrize("every, gamma", [(1, 0.9), (10, 0.1), (33, 0.5)])
def test_step(warmup, every, gamma):
  schedule = schedules.step(
    0.5, f"{every}ba", gamma=gamma, warmup=f"{warmup}ba"
  )
  formula = warmed_up(warmup, lambda t: 0.5 * gamma ** math.floor(t / every))
  assert_follows(schedule, formula)


@WARMUPS
@pytest.mark.parametrize("milestones", [[30], [30, 60, 80], [0, 30, 30], [149]])
def test_multi_step(warmup, milestones):
  schedule = schedules.multi_step(
    0.5, [f"{m}ba" for m in milestones], warmup=f"{warmup}ba"
  )
  formula = warmed_up(
    warmup, lambda t: 0.5 * 0.1 ** len([m for m in milestones if m <= t])
  )
  assert_follows(schedule, formula)


@WARMUPS
@ENDS
def test_linear(warmup, end):
  schedule = schedules.linear(0.5, "100ba", end=end, warmup=f"{warmup}ba")
  formula = warmed_up(
    warmup, lambda t: 0.5 + (end - 0.5) * progress(t, warmup, 100)
  )
  assert_follows(schedule, formula)


@WARMUPS
@ENDS
@pytest.mark.parametrize("power", [0.5, 1, 2, 3])
def test_polynomial(warmup, end, power):
  schedule = schedules.polynomial(
    0.5, "100ba", power=power, end=end, warmup=f"{warmup}ba"
  )
  formula = warmed_up(
    warmup,
    lambda t: end + (0.5 - end) * (1 - progress(t, warmup, 100)) ** power,
  )
  assert_follows(schedule, formula)


@WARMUPS
@pytest.mark.parametrize("every, gamma", [(1, 0.97), (10, 0.1), (33, 2)])
def test_exponential(warmup, every, gamma):
  schedule = schedules.exponential(
    0.5, f"{every}ba", gamma=gamma, warmup=f"{warmup}ba"
  )
  formula = warmed_up(warmup, lambda t: 0.5 * gamma ** ((t - warmup) / every))
  assert_follows(schedule, formula)


@WARMUPS
@ENDS
def test_cosine(warmup, end):
  schedule = schedules.cosine(0.5, "100ba", end=end, warmup=f"{warmup}ba")

  def formula(t):
    wave = math.cos(math.pi * progress(t, warmup, 100))
    return end + (0.5 - end) * (1 + wave) / 2

  assert_follows(schedule, warmed_up(warmup, formula))


@WARMUPS
@ENDS
@pytest.mark.parametrize(
  "cycles, growth, bounds",
  [
    (1, 1, [0, 100]),
    (4, 1, [0, 25, 50, 75, 100]),
    (3, 1, [0, 33, 67, 100]),  # 33.3 and 66.7
    (3, 2, [0, 14, 43, 100]),  # 1/7 and 3/7 of it
    (2, 1.5, [0, 40, 100]),
    (2, 0.25, [0, 80, 100]),
  ],
)
def test_cosine_restarts(warmup, end, cycles, growth, bounds):
  schedule = schedules.cosine_restarts(
    0.5,
    "100ba",
    cycles=cycles,
    growth=growth,
    end=end,
    warmup=f"{warmup}ba",
  )

  def formula(t):
    if t >= 100:
      return end
    cycle = max(i for i, bound in enumerate(bounds) if bound <= t)
    start = max(bounds[cycle], warmup)
    wave = math.cos(math.pi * progress(t, start, bounds[cycle + 1]))
    return end + (0.5 - end) * (1 + wave) / 2

  assert_follows(schedule, warmed_up(warmup, formula))


# --- Boundaries -------------------------------------------------------------

# Each with the rates at b - 1, b, b + 1 of every boundary b, worked out by
# hand, and any boundary further on than single precision counts exactly.
BOUNDARIES = {
  "end of the warm-up": (
    schedules.linear(0.5, "100ba", warmup="50ba"),
    {49: 0.49, 50: 0.5, 51: 0.49},
  ),
  "total": (
    schedules.linear(0.5, "100ba", warmup="50ba"),
    {99: 0.01, 100: 0.0, 101: 0.0, 10**9: 0.0},
  ),
  "a warm-up as long as the total": (
    schedules.linear(0.5, "100ba", end=0.1, warmup="100ba"),
    {0: 0.0, 99: 0.495, 100: 0.1, 101: 0.1},
  ),
  "a cosine warmed up all the time": (
    schedules.cosine(0.5, "100ba", end=0.1, warmup="100ba"),
    {0: 0.0, 99: 0.495, 100: 0.1, 101: 0.1},
  ),
  "every": (
    schedules.step(0.5, "30ba"),
    {29: 0.5, 30: 0.05, 31: 0.05, 59: 0.05, 60: 0.005, 61: 0.005},
  ),
  "milestones": (
    schedules.multi_step(0.5, ["30ba", "60ba"], warmup="40ba"),
    {29: 0.3625, 30: 0.375, 39: 0.4875, 40: 0.05, 41: 0.05}
    | {59: 0.05, 60: 0.005, 61: 0.005, 10**9: 0.005},
  ),
  "restart": (
    schedules.cosine_restarts(0.5, "4ba", cycles=2, end=0.1),
    {0: 0.5, 1: 0.3, 2: 0.5, 3: 0.3, 4: 0.1, 5: 0.1},
  ),
  "far away": (
    schedules.multi_step(0.5, ["2_000_000_001ba"]),
    {2 * 10**9: 0.5, 2 * 10**9 + 1: 0.05, 2 * 10**9 + 2: 0.05},
  ),
}


@pytest.mark.parametrize("name", BOUNDARIES)
def test_the_step_of_a_boundary_is_the_first_behind_it(name):
  schedule, expected = BOUNDARIES[name]
  found = {step: float(schedule(step)) for step in expected}
  assert found == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_the_warm_up_is_counted_inside_the_total():
  """Unlike that of `keras.optimizers.schedules.CosineDecay`."""
  schedule = schedules.cosine(0.5, "100ba", warmup="20ba")
  assert rates(schedule)[20] == pytest.approx(0.5)
  assert rates(schedule)[60] == pytest.approx(0.25)  # half-way of what is left
  assert rates(schedule)[100] == 0.0


# --- Durations --------------------------------------------------------------

TIMELINE = Timeline(
  batch_size=10, fresh_examples=100, factor=2, total="5ep"
)  # 20 steps per epoch, 100 in all


@pytest.mark.parametrize(
  "recipe, in_steps",
  [
    (
      schedules.cosine(0.5, "5ep", warmup="1ep"),
      schedules.cosine(0.5, "100ba", warmup="20ba"),
    ),
    (
      schedules.cosine(0.5, warmup="0.2dur"),  # the whole training by default
      schedules.cosine(0.5, "100ba", warmup="20ba"),
    ),
    (
      schedules.linear(0.5, "500sp", warmup="1e2sp"),
      schedules.linear(0.5, "100ba", warmup="20ba"),
    ),
    (
      schedules.multi_step(0.5, ["30ba", "2.5ep", "0.8dur"]),
      schedules.multi_step(0.5, ["30ba", "50ba", "80ba"]),
    ),
    (schedules.step(0.5, "1ep"), schedules.step(0.5, "20ba")),
    (
      schedules.exponential(0.5, "2.4ep", gamma=0.97, warmup="5ba"),
      schedules.exponential(0.5, "48ba", gamma=0.97, warmup="5ba"),
    ),
  ],
)
def test_durations_are_converted_by_the_timeline(recipe, in_steps):
  assert rates(recipe.on(TIMELINE)) == rates(in_steps)
  assert recipe.on(TIMELINE).steps == in_steps.steps


def test_with_an_echo_an_epoch_has_more_steps():
  recipe = schedules.step(0.5, "1ep")
  for factor, steps in [(1, 10), (2, 20), (4, 40)]:
    timeline = Timeline(batch_size=10, fresh_examples=100, factor=factor)
    assert recipe.on(timeline).steps["every"] == steps


def test_a_recipe_is_no_schedule_before_it_is_told_the_pace():
  recipe = schedules.cosine(0.5, "5ep")
  with pytest.raises(ValueError, match="call its method `on`.*'5ep'"):
    recipe(0)
  with pytest.raises(ValueError, match="call its method `on`"):
    schedules.constant(0.5, resolution="epoch").steps  # noqa: B018


@pytest.mark.parametrize("scale", [0.5, 1.5, 3])
def test_a_scale_stretches_the_whole_recipe(scale):
  scaled = schedules.cosine(0.5, "40ba", warmup="10ba", scale=scale)
  by_hand = schedules.cosine(
    0.5, f"{int(40 * scale)}ba", warmup=f"{int(10 * scale)}ba"
  )
  assert rates(scaled) == rates(by_hand)
  assert rates(scaled.on(TIMELINE)) == rates(by_hand)


def test_a_scale_multiplies_before_rounding():
  recipe = schedules.step(0.5, "0.03ep", scale=10)  # 0.6 of a step, times 10
  assert recipe.on(TIMELINE).steps["every"] == 6


@pytest.mark.parametrize(
  "shape", ["constant", "linear", "cosine", "multi_step", "cosine_restarts"]
)
def test_at_the_resolution_of_an_epoch_it_keeps_the_rate_of_its_first_step(
  shape,
):
  recipes = {
    "constant": (schedules.constant, [0.5], {}),
    "linear": (schedules.linear, [0.5, "5ep"], {}),
    "cosine": (schedules.cosine, [0.5, "5ep"], {}),
    "multi_step": (schedules.multi_step, [0.5, ["2ep", "45ba"]], {}),
    "cosine_restarts": (schedules.cosine_restarts, [0.5], {"cycles": 2}),
  }
  function, arguments, options = recipes[shape]

  def rates_at(resolution):
    recipe = function(
      *arguments, **options, warmup="1.5ep", resolution=resolution
    )
    return rates(recipe.on(TIMELINE))

  by_step, by_epoch = rates_at("step"), rates_at("epoch")
  assert by_epoch == [by_step[step // 20 * 20] for step in range(STEPS)]
  assert by_epoch != by_step


# --- Mistakes ---------------------------------------------------------------


@pytest.mark.parametrize(
  "make, message",
  [
    (lambda: schedules.cosine(0.5, 100), "`total` must be a number and a unit"),
    (lambda: schedules.cosine(0.5, "5epochs"), "got '5epochs'"),
    (lambda: schedules.cosine(0.5, "0ba"), "`total` must be longer than 0"),
    (lambda: schedules.step(0.5, "0ba"), "`every` must be longer than 0"),
    (lambda: schedules.cosine(-1, "9ba"), "`peak` must be a finite number"),
    (lambda: schedules.cosine(0, "9ba"), "`peak` must be above 0, got 0"),
    (lambda: schedules.cosine("0.1", "9ba"), "`peak` must be a finite number"),
    (lambda: schedules.cosine(True, "9ba"), "`peak` must be a finite number"),
    (lambda: schedules.cosine(0.5, "9ba", end=-1), "`end` must be a finite"),
    (lambda: schedules.linear(0.5, "9ba", end=math.nan), "`end` must be a fin"),
    (lambda: schedules.step(0.5, "9ba", gamma=0), "`gamma` must be above 0"),
    (lambda: schedules.polynomial(0.5, power=math.inf), "`power` must be a fi"),
    (lambda: schedules.cosine_restarts(0.5, cycles=0), "`cycles` must be an"),
    (lambda: schedules.cosine_restarts(0.5, cycles=1.5), "`cycles` must be an"),
    (
      lambda: schedules.cosine_restarts(0.5, cycles=2, growth=0),
      "`growth` must be above 0",
    ),
    (lambda: schedules.constant(0.5, scale=0), "`scale` must be above 0"),
    (lambda: schedules.constant(0.5, warmup="-1ba"), "`warmup` must not be"),
    (
      lambda: schedules.constant(0.5, resolution="batch"),
      "`resolution` must be one of ['step', 'epoch'], got 'batch'",
    ),
    (lambda: schedules.multi_step(0.5, []), "`milestones` must be one or more"),
    (
      lambda: schedules.multi_step(0.5, ["9ba", "8ba"]),
      "in ascending order, got [9, 8] steps",
    ),
    (
      lambda: schedules.multi_step(0.5, ["1ep", "9ba"]).on(TIMELINE),
      "in ascending order, got [20, 9] steps",
    ),
    (
      lambda: schedules.cosine(0.5, "9ba", warmup="10ba"),
      "`warmup` is a part of `total`, and must not be longer, got 10 of 9",
    ),
    (
      lambda: schedules.cosine(0.5, "1ep").on(Timeline()),
      "`total`='1ep' can't be converted into steps",
    ),
    (
      lambda: schedules.constant(0.5, resolution="epoch").on(Timeline()),
      "`resolution`='epoch' needs the steps of an epoch",
    ),
    (
      lambda: schedules.constant(0.5).on(None),
      "`timeline` must be a `Timeline`, got None",
    ),
    (lambda: schedules.Schedule("saw", 0.5), "`shape` must be one of"),
  ],
)
def test_a_mistake_is_an_error_where_the_schedule_is_made(make, message):
  with pytest.raises(ValueError) as error:
    make()
  assert message in str(error.value)


# --- In Keras ---------------------------------------------------------------

EVERY_KIND = [
  schedules.constant(0.5, warmup="7ba"),
  schedules.step(0.5, "9ba", gamma=0.3),
  schedules.multi_step(0.5, ["9ba", "12ba"], warmup="3ba"),
  schedules.linear(0.5, "20ba", end=0.1),
  schedules.polynomial(np.float32(0.5), "20ba", power=np.float64(3)),
  schedules.exponential(0.5, "20ba", gamma=0.5),
  schedules.cosine(0.5, "20ba", warmup="3ba", scale=2),
  schedules.cosine_restarts(0.5, "20ba", cycles=3, growth=2),
  schedules.cosine(0.5, "5ep", resolution="epoch").on(TIMELINE),
]


def model_with(optimizer, **compile_options):
  """A model whose weight falls by the learning rate in every step."""
  inputs = keras.Input((1,))
  layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
  model = keras.Model(inputs, layer(inputs))
  model.compile(optimizer, loss=output_as_loss, **compile_options)
  return model


def output_as_loss(targets, outputs):
  """Has the gradient 1 for the weight, if the input is 1."""
  return outputs


def train(model, steps, **fit_options):
  """Trains for as many steps, of one example each."""
  ones = np.ones((steps, 1), np.float32)
  model.fit(ones, ones, batch_size=1, verbose=0, **fit_options)


def weight(model):
  return float(model.get_weights()[0][0, 0])


@pytest.mark.parametrize("schedule", EVERY_KIND, ids=lambda s: s.shape)
def test_an_optimizer_gets_one_rate_for_one_step(schedule):
  for step in (0, 8, 9, 20, tf.Variable(9, dtype=tf.int64)):
    rate = schedule(step)
    assert rate.shape == ()
    assert np.asarray(rate).dtype == np.float32
    assert float(rate) == pytest.approx(rates(schedule)[int(step)], rel=1e-6)


@pytest.mark.parametrize("schedule", EVERY_KIND, ids=lambda s: s.shape)
def test_a_schedule_is_serialized_completely(schedule):
  serialize = keras.optimizers.schedules.serialize
  deserialize = keras.optimizers.schedules.deserialize
  again = deserialize(serialize(schedule))
  assert isinstance(again, schedules.Schedule)
  assert again.get_config() == schedule.get_config()
  assert rates(again) == rates(schedule)


def test_a_recipe_is_serialized_as_a_recipe():
  recipe = schedules.multi_step(
    0.5, ["1.5ep", "0.5dur"], warmup="10sp", resolution="epoch", scale=2
  )
  again = schedules.Schedule.from_config(recipe.get_config())
  assert rates(again.on(TIMELINE)) == rates(recipe.on(TIMELINE))


LOAD = """
import sys
import keras
import numpy as np
if sys.argv[2] == "imported":
  import tfecho.training
model = keras.models.load_model(sys.argv[1])
before = model.get_weights()[0][0, 0]
model.fit(np.ones((2, 1)), np.full((2, 1), -1e3), batch_size=1, verbose=0)
print(before - model.get_weights()[0][0, 0])
"""

# Of Keras, on versions of NumPy that are newer than it.
saves_a_model = pytest.mark.filterwarnings(
  "ignore:__array__ implementation doesn't accept a copy:DeprecationWarning"
)


def store_model(path, schedule, steps):
  """Stores a model that was trained for some steps, its weight falling."""
  model = model_with(keras.optimizers.SGD(schedule))
  model.compile(model.optimizer, loss="mean_absolute_error")
  targets = np.full((steps, 1), -1e3)  # so far away that the gradient is 1
  model.fit(np.ones((steps, 1)), targets, batch_size=1, verbose=0)
  model.save(path)
  return model


def load_and_train(path, *, imported):
  """What becomes of a new process that loads the model and trains 2 steps."""
  return subprocess.run(
    [sys.executable, "-c", LOAD, path, "imported" if imported else "not"],
    env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    capture_output=True,
    text=True,
  )


@saves_a_model
def test_a_stored_model_comes_back_with_its_schedule(tmp_path):
  """In a process that imports tfecho.training, without custom objects."""
  path = str(tmp_path / "model.keras")
  schedule = schedules.cosine(0.5, "20ba", warmup="3ba")
  model = store_model(path, schedule, steps=5)
  assert weight(model) == pytest.approx(-sum(rates(schedule, 5)))
  loaded = load_and_train(path, imported=True)
  assert loaded.returncode == 0, loaded.stderr
  expected = sum(rates(schedule)[5:7])
  assert float(loaded.stdout) == pytest.approx(expected, rel=1e-5)


@saves_a_model
def test_a_stored_model_is_refused_where_nobody_imported_the_schedules(
  tmp_path,
):
  """No Keras imports a module because a file says so."""
  path = str(tmp_path / "model.keras")
  store_model(path, schedules.constant(0.5), steps=1)
  loaded = load_and_train(path, imported=False)
  assert loaded.returncode != 0
  assert "Schedule" in loaded.stderr


# --- What a step is ---------------------------------------------------------

SCHEDULE = schedules.cosine(0.5, "40ba", warmup="5ba")


def test_every_step_of_an_optimizer_has_its_own_rate():
  model = model_with(keras.optimizers.SGD(SCHEDULE))
  weights = []
  keep = keras.callbacks.LambdaCallback(
    on_train_batch_end=lambda batch, logs: weights.append(weight(keep.model))
  )
  train(model, 45, callbacks=[keep])
  expected = -np.cumsum(rates(SCHEDULE, 45))
  np.testing.assert_allclose(weights, expected, rtol=1e-5)


@pytest.mark.parametrize("steps_per_execution", [3, 8])
def test_every_step_of_an_execution_has_its_own_rate(steps_per_execution):
  model = model_with(
    keras.optimizers.SGD(SCHEDULE), steps_per_execution=steps_per_execution
  )
  train(model, 24)
  assert weight(model) == pytest.approx(-sum(rates(SCHEDULE, 24)))


@pytest.mark.skipif(
  not KERAS_3, reason="Keras 2 does not accumulate gradients"
)
def test_every_batch_is_a_step_where_gradients_are_accumulated():
  """The last of a group sets the rate for it."""
  model = model_with(
    keras.optimizers.SGD(SCHEDULE, gradient_accumulation_steps=4)
  )
  train(model, 24)
  assert int(model.optimizer.iterations) == 6
  expected = -sum(rates(SCHEDULE, 24)[3::4])
  assert weight(model) == pytest.approx(expected)


def test_a_batch_that_loss_scaling_skips_is_no_step_in_keras_3():
  scaled = keras.mixed_precision.LossScaleOptimizer(
    keras.optimizers.SGD(SCHEDULE)
  )
  model = model_with(scaled)
  inputs = np.ones((24, 1), np.float32)
  skipped = [3, 10, 11]
  inputs[skipped] = np.inf  # the gradient of the weight
  dataset = tf.data.Dataset.from_tensor_slices((inputs, inputs)).batch(1)
  model.fit(dataset, verbose=0)
  if KERAS_3:
    assert int(model.optimizer.iterations) == 21
    expected = sum(rates(SCHEDULE, 21))
  else:
    assert int(model.optimizer.iterations) == 24
    expected = sum(rates(SCHEDULE, 24)) - sum(
      rates(SCHEDULE)[step] for step in skipped
    )
  assert weight(model) == pytest.approx(-expected)
