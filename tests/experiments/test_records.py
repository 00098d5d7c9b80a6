import dataclasses
import json
import pathlib
import shutil
import subprocess

import pytest

from experiments import environment, records

ENVIRONMENT = {"python": "3.11.0", "tensorflow": "2.21.0", "cpu": "test"}


@pytest.fixture
def path(tmp_path):
  return tmp_path / "made" / "results.jsonl"


def _write(path, *finished):
  with records.RecordFile(path) as file:
    for record in finished:
      file.append(record)


def test_records_come_back_as_they_were_written(path, make_record):
  first, second = make_record(seed=0), make_record("after_batch", seed=1)
  _write(path, first)
  _write(path, second)
  assert records.load(path) == [first, second]


def test_settings_come_back_from_a_record(make_record, make_settings):
  settings = make_settings("after_decode", 2.5, upstream_ms=1.5)
  record = make_record("after_decode", 2.5, upstream_ms=1.5)
  assert records.settings_of(json.loads(json.dumps(record))) == settings


def test_a_record_from_before_a_setting_existed_has_its_default(
  make_record, make_settings
):
  record = make_record("after_decode", upstream_ms=1.5)
  del record["settings"]["upstream_jitter"]
  del record["settings"]["arm"]["on_stall"]
  settings = make_settings("after_decode", upstream_ms=1.5)
  assert records.settings_of(record) == settings
  assert settings.upstream_jitter == 0
  assert not settings.arm.on_stall
  assert records.missing([record], [settings]) == []


def test_settings_that_came_later_have_the_value_that_was_meant_before(
  make_record, make_settings
):
  record = make_record("after_decode", 4)
  for name in ("upstream_jitter", "schedule_resolution"):
    del record["settings"][name]
  for name in ("on_stall", "last_factor"):
    del record["settings"]["arm"][name]
  assert records.settings_of(record) == make_settings("after_decode", 4)


def test_the_recorded_runs_load():
  results = pathlib.Path(records.__file__).with_name("results")
  recorded = set(results.rglob("*.jsonl"))
  recorded.remove(results / "endurance" / "checks.jsonl")  # has no runs
  assert results / "fashion" / "after_batch_0.002.jsonl" in recorded
  for path in recorded:
    for record in records.load(path):
      assert str(records.settings_of(record).arm)


def test_runs_with_a_record_are_not_missing(make_record, make_settings):
  planned = [make_settings(seed=seed) for seed in range(3)]
  finished = [make_record(seed=1)]
  assert records.missing(finished, planned) == [planned[0], planned[2]]


@pytest.mark.parametrize("kept", [1, 40, -1])
def test_a_last_line_that_was_cut_off_is_reported_and_taken_away(
  path, make_record, caplog, kept
):
  first, second = make_record(seed=0), make_record(seed=1)
  _write(path, first, second)
  whole, torn = path.read_bytes().splitlines(keepends=True)
  path.write_bytes(whole + torn[:kept])
  with caplog.at_level("WARNING"), records.RecordFile(path) as file:
    assert file.records == [first]
    file.append(second)
  assert f"{path}:2: cut off" in caplog.text
  assert records.load(path) == [first, second]


@pytest.mark.parametrize(
  "line", ["", "{", "3", '{"format": 1}', '{"format": 99}', "\0\0\0"]
)
def test_a_line_in_the_middle_that_is_no_record_is_named(
  path, make_record, line
):
  _write(path, make_record(seed=0), make_record(seed=1))
  first, second = path.read_text().splitlines()
  damaged = f"{first}\n{line}\n{second}\n"
  path.write_text(damaged)
  with pytest.raises(ValueError, match="results.jsonl:2: not the record"):
    records.RecordFile(path)
  assert path.read_text() == damaged


@pytest.mark.parametrize(
  "damage, message",
  [
    (lambda record: record["counts"].pop("consumed"), "KeyError.'consumed'"),
    (lambda record: record["curve"].pop("step"), "KeyError.'step'"),
    (lambda record: record["curve"]["step"].pop(), "of several lengths"),
    (
      lambda record: record["curve"].update(seconds=["0.9"] * 3),
      "has '0.9' where a number belongs",
    ),
  ],
)
def test_a_record_that_is_damaged_inside_is_named(
  path, make_record, damage, message
):
  record = make_record(seed=1)
  damage(record)
  _write(path, make_record(seed=0), record)
  with pytest.raises(ValueError, match=f"results.jsonl:2: not the .*{message}"):
    records.load(path)


def test_two_processes_do_not_write_to_one_file(path):
  with records.RecordFile(path):
    with pytest.raises(ValueError, match="another process is writing"):
      records.RecordFile(path)
  records.RecordFile(path).__exit__()


@pytest.mark.parametrize(
  "changed",
  [
    {"batch_size": 16},
    {"targets": (0.5,)},
    {"max_steps": 8},
    {"echo_buffer": 32},
    {"implementation": "native"},
    {"learning_rate": 0.1},
  ],
)
def test_other_settings_are_refused_by_name(
  path, make_record, make_settings, changed
):
  _write(path, make_record())
  ((name, value),) = changed.items()
  planned = [dataclasses.replace(make_settings(), **changed)]
  with records.RecordFile(path) as file:
    with pytest.raises(ValueError, match=f"results.jsonl:1: has {name}="):
      records.check_compatible(file, planned, ENVIRONMENT)


def test_what_is_no_matter_of_the_measure_is_refused_for_another_one_too(
  path, make_record, make_settings
):
  _write(path, make_record(measure="final", max_steps=100))
  with records.RecordFile(path) as file:
    records.check_compatible(file, [make_settings(targets=(0.5,))], ENVIRONMENT)
    for changed in ({"workload": "ssd_coco"}, {"echo_buffer": 32}):
      ((name, _),) = changed.items()
      with pytest.raises(ValueError, match=f"results.jsonl:1: has {name}="):
        planned = [make_settings(**changed)]
        records.check_compatible(file, planned, ENVIRONMENT)


@pytest.mark.parametrize("name", ["python", "tensorflow", "cpu"])
def test_another_environment_is_refused_by_name(
  path, make_record, make_settings, name
):
  _write(path, make_record())
  environment = {**ENVIRONMENT, name: "another"}
  with records.RecordFile(path) as file:
    with pytest.raises(ValueError, match=f":1: made under {name}="):
      records.check_compatible(file, [make_settings()], environment)


def test_more_arms_seeds_and_measures_stand_beside_what_is_there(
  path, make_record, make_settings
):
  _write(path, make_record())
  planned = [
    make_settings(seed=7),
    make_settings("after_batch", learning_rate=0.1),
    make_settings(upstream_ms=2.0),
    make_settings("on_stall", upstream_ms=2.0, upstream_jitter=0.5),
    make_settings(measure="final", max_steps=100),
    make_settings(
      measure="final", max_steps=100, schedule_resolution="epoch"
    ),
  ]
  with records.RecordFile(path) as file:
    records.check_compatible(file, planned, ENVIRONMENT)


def test_a_record_names_the_code_that_made_it(make_record):
  assert make_record()["revision"] == environment.revision()


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_code_is_named_by_its_commit(tmp_path, monkeypatch):
  def git(*command):
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *command]
    done = subprocess.run(
      command, cwd=tmp_path, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()

  code = tmp_path / "environment.py"
  monkeypatch.setattr(environment, "__file__", str(code))
  monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
  revision = environment.revision.__wrapped__
  assert revision() is None  # no checkout
  git("init")
  code.write_text("1")
  git("add", code.name)
  git("commit", "-m", "one")
  assert revision() == git("rev-parse", "--short", "HEAD")
  code.write_text("2")
  assert revision() == git("rev-parse", "--short", "HEAD") + "-dirty"
