import dataclasses
import json
import math

import keras
import numpy as np
import pytest

from experiments import curves, records, training_run, workloads
from tfecho.training import Duration


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
  counts = result["counts"]
  assert counts["wait_seconds"] > 0 and counts["evaluation_seconds"] > 0
  outside_of_steps = counts["wait_seconds"] + counts["evaluation_seconds"]
  assert outside_of_steps < counts["seconds"]
  record = records.make(settings, {}, result)
  assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_a_run_ends_once_its_last_target_is_reached(make_settings):
  settings = make_settings(targets=(0.001, 0.002), max_steps=1_000)
  result = training_run.run(settings)
  *before, last = curves.means(result["curve"]["metric"])
  assert last >= 0.002 > max(before, default=0)
  assert result["counts"]["step"] < 1_000


def test_a_run_for_the_final_metric_goes_on_to_its_end(make_settings):
  settings = make_settings(measure="final", targets=(0.001,), max_steps=9)
  counts = training_run.run(settings)["counts"]
  assert counts["step"] == 9  # and is evaluated there, though 9 is odd
  assert counts["consumed"] == 72


class _NoNumber(keras.metrics.Mean):
  def update_state(self, labels, outputs):
    super().update_state(math.nan)


@pytest.mark.parametrize("maximize, worst", [(True, 0.0), (False, math.inf)])
def test_a_run_that_diverges_is_as_bad_as_can_be_and_goes_into_a_record(
  make_settings, monkeypatch, tmp_path, maximize, worst
):
  workload = dataclasses.replace(
    workloads.get("resnet32_cifar10", "small"),
    metric=_NoNumber,
    maximize=maximize,
  )
  monkeypatch.setattr(workloads, "get", lambda name, preset, **_: workload)
  settings = make_settings(max_steps=6)
  result = training_run.run(settings)
  assert result["curve"]["metric"] == [worst] * 3
  record = records.make(settings, {}, result)
  assert curves.reached(record, 0.5) is None
  with records.RecordFile(tmp_path / "results.jsonl") as file:
    file.append(record)
  (loaded,) = records.load(file.path)
  assert loaded == record
  text = file.path.read_text()
  json.loads(text, parse_constant=pytest.fail)  # Of what only Python reads.


@pytest.mark.one_stack
def test_a_run_starts_from_its_seed_whatever_ran_before(make_settings):
  settings = make_settings(max_steps=2)
  first = training_run.run(settings)["curve"]["metric"]
  training_run.run(make_settings(learning_rate=0.1, seed=1))
  again = training_run.run(settings)["curve"]["metric"]
  # Threads add up in another order; two steps are too few to tell it apart.
  assert again == pytest.approx(first, abs=0.01)


@pytest.mark.one_stack
def test_training_learns(make_settings):
  settings = make_settings(batch_size=32, max_steps=60, evaluation_steps=20)
  metric = training_run.run(settings)["curve"]["metric"]
  assert metric[-1] > 0.5  # chance is 0.1


def test_the_rate_is_constant_for_a_target_and_falls_to_nothing_otherwise(
  make_settings,
):
  constant = make_settings(learning_rate=0.4, max_steps=100)
  cosine = make_settings(learning_rate=0.4, max_steps=100, measure="final")
  assert training_run.learning_rate(constant) == 0.4
  expected = [0.2 * (1 + math.cos(math.pi * i / 100)) for i in range(100)]
  assert _rates(cosine) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize(
  "kind, steps_per_epoch", [("baseline", 41), ("after_batch", 163)]
)
def test_the_rate_may_fall_once_a_pass_over_the_fresh_examples(
  make_settings, kind, steps_per_epoch
):
  settings = make_settings(
    kind, 4, batch_size=32, max_steps=200, measure="final"
  )
  per_step = _rates(settings)
  per_epoch = _rates(
    dataclasses.replace(settings, schedule_resolution="epoch")
  )
  assert per_epoch == [
    per_step[step - step % steps_per_epoch] for step in range(200)
  ]


def _rates(settings):
  """The rate of every step, by the timeline of the run."""
  timeline = training_run.timeline(settings)
  schedule = training_run.learning_rate(settings).on(
    timeline.lasting(Duration.parse(f"{settings.max_steps}ba"))
  )
  return schedule(np.arange(settings.max_steps)).numpy().tolist()


@pytest.mark.one_stack
def test_a_factor_may_fall(make_settings, implementation):
  constant = make_settings(
    "after_decode",
    4,
    measure="final",
    max_steps=64,
    evaluation_steps=64,
    implementation=implementation,
  )
  falling = dataclasses.replace(constant, arm=constant.arm.falling_to(1))
  assert training_run.factor_schedule(constant) is None
  factors = training_run.factor_schedule(falling)(np.arange(64)).numpy()
  assert factors == pytest.approx([4 - 3 * step / 64 for step in range(64)])

  for settings in (constant, falling):
    trained = training_run.run(settings)["counts"]["trained"]
    # The factor acts on what is some batches ahead of the training, at most a
    # dozen, as timing decides: that is 0.22 less. Not falling would be 0.41.
    expected = 64 * settings.batch_size / settings.arm.mean_factor
    assert trained == pytest.approx(expected, rel=0.3)
