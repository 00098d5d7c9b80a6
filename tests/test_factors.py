"""Checks of echoing factors, and their arithmetic."""

import fractions
import math

import forking
import numpy as np
import pytest
import tensorflow as tf

import tfecho
from tfecho.factors import Factor


def parse(factor, rounding="even", seed=None):
  return Factor.parse(factor, rounding=rounding, seed=seed)


@pytest.mark.parametrize(
  "factor, constant",
  [
    (1, 1),
    (2, 2),
    (2.0, 2),
    (1.1, fractions.Fraction(11, 10)),
    (2.3, fractions.Fraction(23, 10)),
    (2.5, fractions.Fraction(5, 2)),
    (7 / 3, fractions.Fraction(7, 3)),
    (fractions.Fraction(7, 3), fractions.Fraction(7, 3)),
    (math.pi, fractions.Fraction(355, 113)),
    (np.int64(3), 3),
    (np.float32(2.3), fractions.Fraction(23, 10)),
    (1.00004, 1),  # Closer to 1 than to 10001/10000.
    (2**62, 2**62),
  ],
)
def test_a_number_is_taken_as_the_nearest_small_fraction(factor, constant):
  got = parse(factor).constant
  assert got == constant
  assert got.denominator <= 10_000


def test_pi_is_taken_as_its_best_approximation():
  expected = fractions.Fraction(math.pi).limit_denominator(10_000)
  assert parse(math.pi).constant == expected


BAD_FACTORS = [
  0,
  -1,
  0.5,
  0.999999,
  float("nan"),
  float("inf"),
  -float("inf"),
  True,
  False,
  "2",
  None,
  [2],
  np.array([2, 3]),
  2 + 0j,
  2**62 + 1,
  10**400,
]


@pytest.mark.parametrize("factor", BAD_FACTORS, ids=repr)
def test_what_is_no_factor_is_refused_by_name_and_value(factor):
  with pytest.raises(ValueError, match="`factor`") as raised:
    tfecho.echo(factor)
  assert repr(factor) in str(raised.value)


def test_a_variable_that_is_no_scalar_is_refused_with_its_shape():
  with pytest.raises(ValueError, match=r"`factor`.*scalar.*\(2,\)"):
    tfecho.echo(tf.Variable([2, 3]))


@pytest.mark.parametrize("dtype", [tf.bool, tf.uint8, tf.float16, tf.string])
def test_a_variable_of_another_dtype_is_refused_with_its_dtype(dtype):
  value = "2" if dtype == tf.string else tf.cast(1, dtype)
  with pytest.raises(ValueError, match=f"`factor`.*{dtype.name}"):
    tfecho.echo(tf.Variable(value, dtype=dtype))


@pytest.mark.parametrize(
  "arguments, message",
  [
    ({"rounding": "up"}, "`rounding`.*'up'"),
    ({"rounding": None}, "`rounding`.*None"),
    ({"seed": 1}, "`seed`.*1"),
    ({"seed": "a", "rounding": "random"}, "`seed` must be an int .* got 'a'"),
    ({"seed": 1.5, "rounding": "random"}, "`seed` must be an int .* got 1.5"),
    ({"seed": 1, "rounding": "even"}, "`seed`.*even"),
    ({"implementation": "cuda"}, "`implementation`.*'cuda'"),
    ({"buffer_size": -2}, "`buffer_size`.*-2"),
    ({"buffer_size": 1.5}, "`buffer_size`.*1.5"),
    ({"buffer_size": True}, "`buffer_size`.*True"),
    ({"stats": 1}, "`stats`.*int"),
  ],
)
def test_other_bad_arguments_are_refused_by_name_and_value(arguments, message):
  with pytest.raises(ValueError, match=message):
    tfecho.echo(2.5, **arguments)


@pytest.mark.parametrize("value", [0, 0.5, float("nan"), "2", None])
def test_a_variable_is_not_made_from_what_is_no_factor(value):
  with pytest.raises(ValueError, match="`value`"):
    tfecho.factor_variable(value)


def test_a_whole_variable_is_not_made_from_a_fraction():
  with pytest.raises(ValueError, match="`value` must be whole.*2.5"):
    tfecho.factor_variable(2.5, dtype=tf.int64)


def test_a_variable_is_not_made_of_a_dtype_that_no_factor_has():
  with pytest.raises(ValueError, match="`dtype`.*float16"):
    tfecho.factor_variable(2, dtype=tf.float16)


def test_a_factor_variable_is_a_plain_scalar_on_the_cpu():
  variable = tfecho.factor_variable(2.5)
  assert variable.shape.rank == 0
  assert "CPU:0" in variable.device
  assert not variable.trainable
  assert variable.numpy() == 2.5


UNDER_A_STRATEGY = """
import tensorflow as tf
import tfecho

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(
  cpu, [tf.config.LogicalDeviceConfiguration()] * 2
)
with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
  variable = tfecho.factor_variable(2)
  mirrored = tf.Variable(2.0)
assert not hasattr(variable, "values"), variable
dataset = tf.data.Dataset.range(2)
echo = tfecho.echo(variable, implementation="graph")
assert [int(x) for x in dataset.apply(echo)] == [0, 0, 1, 1]
try:
  tfecho.echo(mirrored)
except ValueError as error:
  assert "tfecho.factor_variable" in str(error), error
else:
  raise AssertionError("a mirrored variable was taken")
"""


def test_a_factor_variable_made_under_a_strategy_is_not_mirrored():
  # The devices of a process can be split only before TensorFlow starts.
  result = forking.run("-c", UNDER_A_STRATEGY)
  assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
  "factor, fresh, emitted",
  [
    (2, 5, 10),
    (2.5, 5, 12),
    (1.1, 9, 9),
    (1.1, 10, 11),
    (7 / 3, 10**15, 7 * 10**15 // 3),
    (2, 0, 0),
    (2, tf.data.INFINITE_CARDINALITY, tf.data.INFINITE_CARDINALITY),
    (2, tf.data.UNKNOWN_CARDINALITY, tf.data.UNKNOWN_CARDINALITY),
    (2, 2**62 - 1, 2**63 - 2),
    (2, 2**62, tf.data.UNKNOWN_CARDINALITY),
  ],
)
def test_n_elements_become_the_floor_of_n_times_the_factor(
  factor, fresh, emitted
):
  assert parse(factor).cardinality(fresh) == emitted


@pytest.mark.parametrize("fresh, emitted", [(3, -2), (0, 0), (-1, -1)])
def test_chance_and_variables_leave_only_none_and_endless_known(fresh, emitted):
  assert parse(2.5, "random").cardinality(fresh) == emitted
  assert parse(tfecho.factor_variable(2)).cardinality(fresh) == emitted


def test_a_whole_factor_leaves_nothing_to_chance():
  assert not parse(3, "random", seed=1).random
  assert parse(3, "random").cardinality(3) == 9
