"""The flags of a schedule become a learning rate for every step."""

import types

import pytest
from absl import flags

from experiments import schedule_flags
from tfecho.training import Timeline, schedules

RECIPE = schedules.multi_step(0.1, ["4ep", "6ep"], warmup="1ep")
# Of two steps an epoch.
TIMELINE = Timeline(batch_size=5, fresh_examples=10, total="8ep")


pytestmark = pytest.mark.usefixtures("flags_as_given")


def _rates(recipe=RECIPE, **given):
  for name, value in given.items():
    setattr(flags.FLAGS, name, value)
  workload = types.SimpleNamespace(learning_rate=recipe)
  rate = schedule_flags.learning_rate(workload).on(TIMELINE)
  return [float(rate(step)) for step in range(16)]


def _expected(schedule):
  rate = schedule.on(TIMELINE)
  return pytest.approx([float(rate(step)) for step in range(16)])


def test_without_flags_the_recipe_holds():
  assert _rates() == _expected(RECIPE)
  assert _rates(0.3) == pytest.approx([0.3] * 16)


@pytest.mark.parametrize("name", ["constant", "linear", "cosine"])
def test_another_shape_keeps_peak_and_warm_up(name):
  shape = getattr(schedules, name)
  assert _rates(schedule=name) == _expected(shape(0.1, warmup="1ep"))


def test_peak_warm_up_and_resolution_are_flags_of_their_own():
  given = {"learning_rate": 0.2, "warmup": "0.25dur"}
  changed = schedules.multi_step(0.2, ["4ep", "6ep"], warmup="0.25dur")
  assert _rates(**given) == _expected(changed)
  assert _rates(
    schedule="linear", schedule_resolution="epoch", **given
  ) == _expected(schedules.linear(0.2, warmup="0.25dur", resolution="epoch"))


@pytest.mark.parametrize(
  "given, message",
  [
    ({"learning_rate": -1.0}, "^--learning_rate: `peak`.*-1"),
    ({"warmup": "5"}, "^`--warmup` must be a number and a unit"),
  ],
)
def test_a_mistake_is_told_with_its_flag(given, message):
  with pytest.raises(ValueError, match=message):
    _rates(**given)
