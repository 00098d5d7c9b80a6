"""`train` with a real `fit` in several processes, where Keras can do that."""

import keras
import pytest
from processes import run_workers
from training_workers import BATCH_SIZE, EPOCHS, EXAMPLES, FACTOR

pytestmark = pytest.mark.skipif(
  hasattr(keras, "ops"), reason="`fit` of Keras 3 can't train several workers"
)

STEPS = EXAMPLES * FACTOR // BATCH_SIZE
FIXED = ["by TensorFlow", "by the pipeline", "by the pipeline, unevenly"]
TRAININGS = [*FIXED, "on stall"]


@pytest.fixture(scope="module")
def reports(native_ops, tmp_path_factory):
  """What the trainings came to on each worker."""
  folder = tmp_path_factory.mktemp("workers")
  return run_workers("training_workers.py", folder, folder=folder)


@pytest.mark.parametrize("name", TRAININGS)
def test_all_workers_come_to_the_same(reports, name):
  one, other = ({**report[name]} for report in reports)
  for own in ("decoded", "consumed"):
    del one[own], other[own]
  assert one == other


@pytest.mark.parametrize("name", TRAININGS)
def test_each_worker_decodes_its_own_share(reports, name):
  shares = [report[name]["decoded"] for report in reports]
  first = 1 if "unevenly" in name else 0
  assert sorted(sum(shares, [])) == list(range(first, EXAMPLES))


@pytest.mark.parametrize("name", FIXED)
def test_an_epoch_is_one_pass_over_the_data_of_all_workers(reports, name):
  steps = [STEPS * epoch for epoch in range(1, EPOCHS + 1)]
  for report in reports:
    assert report[name]["steps"] == steps


@pytest.mark.parametrize("name", TRAININGS)
def test_fresh_examples_are_those_of_all_workers(reports, name):
  """Counted at the echo, so those are in that wait behind it."""
  consumed = [report[name]["consumed"] for report in reports]
  for report in reports:
    counted = report[name]["fresh_examples"][-1]
    used = report[name]["steps"][-1] * BATCH_SIZE // FACTOR
    assert max(used, *consumed) <= counted <= sum(consumed)


@pytest.mark.parametrize("name", TRAININGS)
def test_it_learns(reports, name):
  loss = reports[0][name]["val_loss"]
  assert loss[-1] < loss[0]


def test_epochs_of_fresh_examples_end_for_all_workers_at_once(reports):
  one, other = (report["epochs of fresh examples"] for report in reports)
  assert one["steps"] == other["steps"] <= EPOCHS * STEPS
  assert one["consumed"] + other["consumed"] >= EPOCHS * EXAMPLES


def test_shards_for_other_workers_are_refused(reports):
  for report in reports:
    assert "one of 3 shards, and 2 workers train" in report["refused"]
