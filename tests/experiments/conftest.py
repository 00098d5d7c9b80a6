"""Settings and records for tests of the experiments, small by default."""

import pytest
from absl import flags
from absl.testing import flagsaver

from experiments import arms, records
from experiments.settings import RunSettings

ENVIRONMENT = {"python": "3.11.0", "tensorflow": "2.21.0", "cpu": "test"}


@pytest.fixture
def flags_as_given():
  """Lets a test set flags, and sets them back behind it."""
  if not flags.FLAGS.is_parsed():
    flags.FLAGS.mark_as_parsed()
  with flagsaver.flagsaver():
    yield


@pytest.fixture
def make_settings():
  """Returns a function that makes `RunSettings`, with defaults for the rest."""

  def make(kind="baseline", factor=4, **changed):
    fields = {
      "workload": "resnet32_cifar10",
      "preset": "small",
      "measure": "target",
      "arm": arms.parse(kind, factor),
      "seed": 0,
      "learning_rate": 0.002,
      "batch_size": 8,
      "echo_buffer": 16,
      "upstream_ms": 0.0,
      "targets": (0.5, 0.9),
      "max_steps": 4,
      "evaluation_steps": 2,
      "implementation": "graph",
    }
    return RunSettings(**{**fields, **changed})

  return make


@pytest.fixture
def make_record(make_settings):
  """Returns a function that makes the record of a run that never was.

  It is evaluated three times in one place, where it has consumed so many fresh
  examples, and reached all targets unless `metric` is too low.
  """

  def make(kind="baseline", factor=4, *, consumed=800, metric=0.95, **changed):
    settings = make_settings(kind, factor, **changed)
    row = {
      "step": settings.max_steps,
      "read": consumed + 10,
      "consumed": consumed,
      "trained": consumed,
      "seconds": 2.0,
      "metric": metric,
    }
    result = {
      "metric": {"name": "validation accuracy", "maximize": True},
      "counts": {
        **row,
        "emitted": consumed * settings.arm.factor,
        "distinct_share": 1.0,
        "repeat_distance": None,
        "wait_seconds": 0.5,
      },
      "curve": {name: 3 * [value] for name, value in row.items()},
    }
    return records.make(settings, ENVIRONMENT, result)

  return make
