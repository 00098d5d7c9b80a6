"""What optimizers do, in NumPy and float64, and a training to compare them in.

A rule is made for one weight, and then called once for every step with the
weight, its gradient and the learning rate; it returns the new weight. Sources
are those that `tfecho.training.optimizers` names.
"""

import functools

import keras
import numpy as np
import tensorflow as tf

from tfecho.training import optimizers, schedules, train

STEPS = 14
BATCH_SIZE = 4
RATE = schedules.cosine(0.1, f"{STEPS}ba", warmup="3ba")

# So small that no gradient overflows when the loss is scaled: those steps would
# be skipped.
_random = np.random.default_rng(3)
INPUTS = _random.normal(size=(STEPS * BATCH_SIZE, 3)).astype(np.float32)
OUTPUTS = 0.3 * _random.normal(size=(STEPS * BATCH_SIZE, 2)).astype(np.float32)
WEIGHTS = (0.3 * _random.normal(size=(3, 2)), 0.3 * _random.normal(size=2))

# --- Rules ------------------------------------------------------------------


def sgd(momentum=0.0):
  velocity = 0.0

  def step(weight, gradient, rate):
    nonlocal velocity
    velocity = momentum * velocity - rate * gradient
    return weight + velocity

  return step


def adam(beta_1=0.9, beta_2=0.999, epsilon=1e-7):
  moments = _moments(beta_1, beta_2)

  def step(weight, gradient, rate):
    m, v, corrections = moments(gradient)
    rate = rate * np.sqrt(corrections[1]) / corrections[0]
    return weight - rate * m / (np.sqrt(v) + epsilon)

  return step


def lamb(decay_in_ratio=0.0, beta_1=0.9, beta_2=0.999, epsilon=1e-7):
  moments = _moments(beta_1, beta_2)

  def step(weight, gradient, rate):
    m, v, corrections = moments(gradient)
    m, v = m / corrections[0], v / corrections[1]
    update = m / (np.sqrt(v) + epsilon) + decay_in_ratio * weight
    ratio = np.linalg.norm(weight) / np.linalg.norm(update)
    return weight - rate * ratio * update

  return step


def novograd(beta_1=0.9, beta_2=0.999, epsilon=1e-7):
  moment, velocity = None, 0.0

  def step(weight, gradient, rate):
    nonlocal moment, velocity
    square = np.sum(gradient**2)
    first = moment is None
    moment = square if first else beta_2 * moment + (1 - beta_2) * square
    velocity = beta_1 * velocity - rate * gradient / (np.sqrt(moment) + epsilon)
    return weight + velocity

  return step


def _moments(beta_1, beta_2):
  m = v = steps = 0

  def update(gradient):
    nonlocal m, v, steps
    steps += 1
    m = beta_1 * m + (1 - beta_1) * gradient
    v = beta_2 * v + (1 - beta_2) * gradient**2
    return m, v, (1 - beta_1**steps, 1 - beta_2**steps)

  return update


def decayed(rule, decay):
  """The decay of Keras: times the learning rate."""
  return lambda weight, gradient, rate: rule(
    weight - rate * decay * weight, gradient, rate
  )


def decayed_by_addons(rule, decay):
  """The decay of the AdamW and SGDW of addons: whatever the rate is."""
  return lambda weight, gradient, rate: rule(
    weight - decay * weight, gradient, rate
  )


def lookahead(rule, sync_period=6, slow_step_size=0.5):
  slow, steps = None, 0

  def step(weight, gradient, rate):
    nonlocal slow, steps
    slow = weight if slow is None else slow
    weight, steps = rule(weight, gradient, rate), steps + 1
    if steps % sync_period == 0:
      weight = slow = slow + slow_step_size * (weight - slow)
    return weight

  return step


# --- Averages of what a rule gives ------------------------------------------


def moving_average(weights, ema_momentum=0.99):
  average = weights[0]
  for weight in weights[1:]:
    average = ema_momentum * average + (1 - ema_momentum) * weight
  return average


def swa(weights, start_averaging=0, average_period=10):
  return np.mean(weights[start_averaging::average_period], axis=0)


# --- A training -------------------------------------------------------------


def expected(make_rule, average=lambda weights: weights[-1]):
  """The weights that a rule trains a linear model to."""
  weights, rules = list(WEIGHTS), [make_rule(), make_rule()]
  history = []
  for step, rate in enumerate(np.asarray(RATE(np.arange(STEPS)), np.float64)):
    rows = slice(step * BATCH_SIZE, (step + 1) * BATCH_SIZE)
    errors = INPUTS[rows] @ weights[0] + weights[1] - OUTPUTS[rows]
    slopes = 2 * errors / errors.size
    gradients = (INPUTS[rows].T @ slopes, slopes.sum(axis=0))
    weights = [
      rule(weight, gradient, rate)
      for rule, weight, gradient in zip(rules, weights, gradients)
    ]
    history.append(weights)
  return [average(weight) for weight in zip(*history)]


def linear_model():
  model = keras.Sequential([
    keras.Input((3,)),
    keras.layers.Dense(2),
    keras.layers.Activation("linear", dtype="float32"),
  ])
  model.set_weights([weight.astype(np.float32) for weight in WEIGHTS])
  return model


def dataset():
  data = tf.data.Dataset.from_tensor_slices((INPUTS, OUTPUTS))
  return data.batch(BATCH_SIZE, drop_remainder=True)


def trained(name, options=None, *, data=None, **changed):
  """What `train` makes of the same model by this name."""
  return train(
    linear_model,
    dataset() if data is None else data,
    length="1ep",
    optimizer=functools.partial(optimizers.get, name, **(options or {})),
    learning_rate=RATE,
    loss="mse",
    verbose=0,
    **changed,
  )


def weights_of(name, options=None, **changed):
  return trained(name, options, **changed).model.get_weights()
