import logging

import pytest

from experiments import comparisons, records
from experiments.training_settings import TrainingSettings


def _write(path, *finished):
  with records.RecordFile(path) as file:
    for record in finished:
      file.append(record)
  return path


def _made_under(record, **environment):
  return {
    **record,
    "environment": {**record["environment"], **environment},
  }


def test_arms_seeds_and_upstreams_are_one_comparison(make_record):
  finished = [
    make_record(seed=0),
    make_record(seed=1),
    make_record("after_batch", learning_rate=0.1),
    make_record(upstream_ms=2.0, upstream_jitter=0.5),
  ]
  (one,) = comparisons.split(finished, "target")
  assert one.runs == finished
  assert one.name == ""
  assert comparisons.split(finished, "final") == []


@pytest.mark.parametrize(
  "name, values",
  [
    ("batch_size", (8, 16)),
    ("echo_buffer", (16, 32)),
    ("preset", ("small", "fashion")),
    ("max_steps", (4, 5)),
    ("implementation", ("native", "graph")),
  ],
)
def test_other_settings_are_another_comparison(make_record, name, values):
  finished = [make_record(**{name: value}) for value in values]
  found = comparisons.split(finished, "target")
  assert [one.runs for one in found] == [finished[:1], finished[1:]]
  assert [one.name for one in found] == [f"{name}={v}" for v in values]


def test_another_way_to_train_is_another_comparison(make_record):
  half = TrainingSettings(precision="mixed_bfloat16")
  finished = [make_record(), make_record(training=half)]
  found = comparisons.split(finished, "target")
  assert [one.name for one in found] == [
    "precision=float32",
    "precision=mixed_bfloat16",
  ]


def test_other_versions_are_another_comparison(make_record):
  finished = [
    make_record(),
    _made_under(make_record(seed=1), tensorflow="2.15.1"),
  ]
  found = comparisons.split(finished, "target")
  assert [one.name for one in found] == [
    "tensorflow=2.21.0",
    "tensorflow=2.15.1",
  ]


def test_runs_of_several_processors_compare(make_record):
  finished = [make_record(), _made_under(make_record(seed=1), cpu="other")]
  (one,) = comparisons.split(finished, "target")
  assert one.runs == finished
  assert comparisons.processors(one.runs) == ("test", "other")


def test_seconds_of_several_processors_do_not_compare(make_record):
  def timed(**changed):
    return make_record(upstream_ms=2.0, **changed)

  finished = [
    make_record(),
    timed(),
    _made_under(make_record("after_batch"), cpu="other"),
    _made_under(timed(seed=1), cpu="other"),
  ]
  found = comparisons.split(finished, "target")
  assert [one.runs for one in found] == [finished[:2], finished[2:]]
  assert [one.name for one in found] == ["cpu=test", "cpu=other"]
  # Those of one compare with what was not timed, wherever that was made.
  (one,) = comparisons.split(finished[:3], "target")
  assert one.runs == finished[:3]


def test_a_record_that_lacks_a_setting_has_the_value_that_was_meant(
  make_record,
):
  older = make_record()
  del older["settings"]["upstream_jitter"]
  del older["settings"]["arm"]["last_factor"]
  assert len(comparisons.split([older, make_record(seed=1)], "target")) == 1


def test_an_arm_that_was_trained_at_two_rates_does_not_compare(make_record):
  trials = [make_record(learning_rate=rate) for rate in (0.001, 0.002)]
  with pytest.raises(ValueError, match="baseline.*learning_rate=0.001 and"):
    comparisons.split(trials, "target")


def test_several_files_are_read_as_one(make_record, tmp_path):
  first, second = make_record(seed=0), make_record(batch_size=16)
  paths = [_write(tmp_path / "a", first), _write(tmp_path / "b", second)]
  assert comparisons.load(paths) == [first, second]


def test_a_pattern_stands_for_the_files_that_it_fits(make_record, tmp_path):
  runs = [make_record(seed=seed) for seed in range(3)]
  for name, run in zip(("b.jsonl", "a.jsonl", "[c].jsonl"), runs):
    _write(tmp_path / name, run)
  found = comparisons.load([tmp_path / "?.jsonl", tmp_path / "[c].jsonl"])
  assert found == [runs[1], runs[0], runs[2]]
  with pytest.raises(FileNotFoundError, match="none"):
    comparisons.load([tmp_path / "none*.jsonl"])


def test_a_run_that_is_in_two_files_counts_once_and_is_told(
  make_record, tmp_path, caplog
):
  first, again = make_record(consumed=800), make_record(consumed=900)
  paths = [_write(tmp_path / "a", first), _write(tmp_path / "b", again)]
  with caplog.at_level(logging.WARNING):
    assert comparisons.load(paths) == [first]
  assert "b: 1 runs are recorded twice" in caplog.text


@pytest.mark.parametrize("upstream_ms, count", [(0.0, 1), (2.0, 2)])
def test_a_run_on_another_processor_is_the_same_one_unless_it_is_timed(
  make_record, tmp_path, upstream_ms, count
):
  run = make_record(upstream_ms=upstream_ms)
  paths = [
    _write(tmp_path / "a", run),
    _write(tmp_path / "b", _made_under(run, cpu="other")),
  ]
  assert len(comparisons.load(paths)) == count


@pytest.mark.parametrize("broken", ['{"format": 1, "da', "", "null", "{}"])
def test_a_broken_line_is_told_with_its_file_among_several(
  make_record, tmp_path, broken
):
  whole = _write(tmp_path / "whole.jsonl", make_record())
  half = _write(tmp_path / "half.jsonl", make_record())
  half.write_text(f"{half.read_text()}{broken}\n")
  with pytest.raises(ValueError, match=r"half.jsonl:2: not the record"):
    comparisons.load([whole, half])


def test_runs_that_a_rate_was_chosen_by_are_not_reported(make_record, tmp_path):
  path = _write(tmp_path / "trials.jsonl", make_record(seed=1_000))
  with pytest.raises(ValueError, match="trials.jsonl:1: has seed 1000, one of"):
    comparisons.load([path])


def test_a_baseline_serves_comparisons_of_every_buffer(make_record):
  def run(kind, buffer, **changed):
    return make_record(kind, 4, echo_buffer=buffer, **changed)

  finished = [
    run("after_decode", 16),
    run("baseline", 64),
    run("after_decode", 64),
    run("after_batch", 64),
    run("baseline", 128, learning_rate=0.1),
    run("after_decode", 128),
    run("after_decode", 64, batch_size=32),  # differs in more than its buffer
  ]
  narrow, *own, other = comparisons.split(finished, "target")
  assert narrow.runs == [finished[0], finished[1]]
  assert [one.runs for one in own] == [finished[1:4], finished[4:6]]
  assert other.runs == finished[6:]
