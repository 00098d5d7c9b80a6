import json

import pytest

from experiments import records, training_run


def test_a_run_trains_and_counts(make_settings, implementation):
  settings = make_settings(
    "after_batch", 4, max_steps=8, implementation=implementation
  )
  evaluations = []
  result = training_run.run(
    settings, on_evaluation=lambda step, metric: evaluations.append(step)
  )
  assert evaluations == result["curve"]["step"] == [2, 4, 6, 8]
  assert result["curve"]["consumed"] == [8, 8, 16, 16]
  assert result["counts"]["emitted"] == 64
  assert result["to_target"] == {"0.5": None, "0.9": None}
  assert 0 < result["counts"]["wait_seconds"] < result["counts"]["seconds"]
  record = records.make(settings, {}, result)
  assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_a_run_ends_once_its_last_target_is_reached(make_settings):
  settings = make_settings(targets=(0.001, 0.002), max_steps=1_000)
  result = training_run.run(settings)
  # Three evaluations, the first of which may well be worse than 0.002.
  row = result["to_target"]["0.002"]
  assert result["counts"]["step"] == row["step"] < 1_000
  assert row["consumed"] == 8 * row["step"]


def test_a_run_for_the_final_metric_goes_on_to_its_end(make_settings):
  settings = make_settings(measure="final", targets=(0.001,), max_steps=9)
  counts = training_run.run(settings)["counts"]
  assert counts["step"] == 9  # and is evaluated there, though 9 is odd
  assert counts["consumed"] == 72


def test_a_run_starts_from_its_seed_whatever_ran_before(make_settings):
  settings = make_settings(max_steps=2)
  first = training_run.run(settings)["curve"]["metric"]
  training_run.run(make_settings(learning_rate=0.1, seed=1))
  again = training_run.run(settings)["curve"]["metric"]
  # Threads add up in another order; two steps are too few to tell it apart.
  assert again == pytest.approx(first, abs=0.01)


def test_training_learns(make_settings):
  settings = make_settings(batch_size=32, max_steps=60, evaluation_steps=20)
  metric = training_run.run(settings)["curve"]["metric"]
  assert metric[-1] > 0.5  # chance is 0.1


def test_the_rate_is_constant_for_a_target_and_falls_to_nothing_otherwise(
  make_settings,
):
  constant = make_settings(learning_rate=0.4, max_steps=100)
  cosine = make_settings(learning_rate=0.4, max_steps=100, measure="final")

  def rates(settings):
    return [training_run.learning_rate(settings, s) for s in (0, 50, 99)]

  assert rates(constant) == [0.4, 0.4, 0.4]
  assert rates(cosine) == pytest.approx([0.4, 0.2, 0.0001], rel=0.02)


def test_all_arms_share_one_trace(make_settings):
  for kind in ("baseline", "after_batch"):
    for batch_size in (4, 8):
      settings = make_settings(kind, batch_size=batch_size, max_steps=1)
      training_run.run(settings)
  assert training_run.trainer("resnet32_cifar10", "small").traces == 1
