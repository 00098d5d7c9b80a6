"""A single training as a person starts it: whole, interrupted, and refused."""

import csv
import json
import pathlib
import signal
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).parents[2]
TINY = [
  "--arm=after_decode",
  "--factor=2",
  "--batch_size=8",
  "--echo_buffer=16",
  "--epoch=2ba",
  "--implementation=graph",
]
WHOLE = ["--length=8ba", "--optimizer=sgd"]


def _start(output_dir, *arguments):
  return subprocess.Popen(
    [
      *(sys.executable, "-m", "experiments.run", *TINY, *arguments),
      f"--output_dir={output_dir}",
    ],
    cwd=ROOT,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  )


def _epochs(output_dir):
  with open(output_dir / "epochs.csv") as file:
    return [(int(r["epoch"]), float(r["loss"])) for r in csv.DictReader(file)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
  """The directory of a training that nothing interrupted."""
  output_dir = tmp_path_factory.mktemp("run")
  process = _start(output_dir, *WHOLE, "--tensorboard")
  _, errors = process.communicate()
  assert process.returncode == 0, errors
  return output_dir


def test_a_training_leaves_its_course_and_what_it_came_to(whole):
  assert [epoch for epoch, _ in _epochs(whole)] == [0, 1, 2, 3]
  result = json.loads((whole / "result.json").read_text())
  assert (result["steps"], result["fresh_examples"]) == (8, 32)
  assert 0 <= result["val_metric"] <= 1
  assert json.loads((whole / "settings.json").read_text())["optimizer"] == "sgd"
  assert list((whole / "tensorboard").rglob("events.out.tfevents.*"))


def test_what_is_over_is_not_begun_again(whole):
  process = _start(whole, *WHOLE)
  _, errors = process.communicate()
  assert process.returncode == 1
  assert f"error: --output_dir: {whole} has a training that is over" in errors


def test_an_interrupted_training_goes_on_and_takes_no_other_settings(
  tmp_path,
):
  process = _start(tmp_path, "--length=2000ba")
  while not (tmp_path / "epochs.csv").exists() or len(_epochs(tmp_path)) < 2:
    assert process.poll() is None, process.communicate()[1]
    time.sleep(0.1)
  process.send_signal(signal.SIGKILL)
  process.communicate()

  other = _start(tmp_path, "--length=2000ba", "--seed=1")
  assert "has a training with seed=0, this is 1" in other.communicate()[1]

  before = len(_epochs(tmp_path))
  again = _start(tmp_path, "--length=2000ba")
  while len(_epochs(tmp_path)) == before:
    assert again.poll() is None, again.communicate()[1]
    time.sleep(0.1)
  again.terminate()
  again.communicate()
  assert again.returncode == 128 + signal.SIGTERM
  # The last epoch is logged twice if its backup was not made yet.
  assert _epochs(tmp_path)[before][0] in (before - 1, before)


def test_a_mistake_is_told_in_one_line(tmp_path):
  process = _start(tmp_path, "--length=3")
  _, errors = process.communicate()
  assert process.returncode == 1
  assert "error: `--length` must be a number and a unit" in errors
  assert "Traceback" not in errors
