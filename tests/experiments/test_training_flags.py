"""The flags of a training become arguments of `train`."""

import optimizer_rules as rules
import pytest
from absl import flags

from experiments import training_flags
from tfecho.training import schedules, train

pytestmark = pytest.mark.usefixtures("flags_as_given")


def options(**given):
  for name, value in given.items():
    setattr(flags.FLAGS, name, value)
  return training_flags.settings().options()


def test_without_flags_the_workload_chooses_the_optimizer():
  usual = {"precision": "float32", "layout": None, "strategy": None}
  assert options() == usual


def test_train_takes_what_they_say():
  given = options(
    optimizer="sgd",
    optimizer_options=["momentum=0.9", "nesterov=true", "weight_decay=5e-4"],
    precision="mixed_bfloat16",
  )
  result = train(
    rules.linear_model,
    rules.dataset(),
    length="1ep",
    learning_rate=schedules.constant(0.1),
    loss="mse",
    verbose=0,
    **given,
  )
  config = result.model.optimizer.get_config()
  assert (config["momentum"], config["nesterov"]) == (0.9, True)
  assert config["weight_decay"] == 5e-4
  assert result.model.dtype_policy.name == "mixed_bfloat16"


@pytest.mark.parametrize("text", ["a", "a=", "=1", "a=[1]", "a=b"])
def test_an_option_that_is_none_is_refused(text):
  with pytest.raises(ValueError, match="--optimizer_options: must be NAME=VAL"):
    options(optimizer="sgd", optimizer_options=[text])


@pytest.mark.parametrize(
  "given, message",
  [
    ({"optimizer": "sdg"}, "--optimizer: .* got 'sdg'"),
    (
      {"optimizer": "sgd", "optimizer_options": ["speed=1"]},
      "--optimizer: .*speed",
    ),
    ({"optimizer_options": ["momentum=1"]}, "must come with --optimizer"),
    (
      {"optimizer": "sgd", "optimizer_options": ["learning_rate=1"]},
      "got 'learning_rate=1'",
    ),
  ],
)
def test_a_mistake_is_told_before_anything_is_trained(given, message):
  with pytest.raises(ValueError, match=message):
    options(**given)
