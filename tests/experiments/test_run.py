"""A single training as a person starts it: whole, interrupted, and refused."""

import csv
import json
import re
import signal
import socket
import time

import pytest
import scripts
from datasets import needs_tensorflow_datasets

TINY = [
  "--arm=after_decode",
  "--factor=2",
  "--batch_size=8",
  "--echo_buffer=16",
  "--epoch=2ba",
  "--implementation=graph",
]
WHOLE = ["--length=8ba", "--optimizer=sgd", "--schedule=linear"]


def _flags(output_dir, *flags):
  return ["experiments.run", *TINY, *flags, f"--output_dir={output_dir}"]


def _run(output_dir, *flags):
  return scripts.run(*_flags(output_dir, *flags))


def _start(output_dir, *flags):
  log = output_dir.with_suffix(".log")
  return scripts.start(*_flags(output_dir, *flags), out=log, err=log), log


def _wait_for(epochs, output_dir, process, log):
  """Waits until so many epochs are logged."""
  while len(_epochs(output_dir)) < epochs:
    assert process.is_alive(), log.read_text()
    time.sleep(0.1)


def _epochs(output_dir):
  path = output_dir / "epochs.csv"
  if not path.exists():
    return []
  with path.open() as file:
    return [(int(r["epoch"]), float(r["loss"])) for r in csv.DictReader(file)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
  """The directory of a training that nothing interrupted."""
  output_dir = tmp_path_factory.mktemp("run")
  done = _run(output_dir, *WHOLE, "--tensorboard")
  assert done.returncode == 0, done.stderr
  assert "epoch 4: loss " in done.stderr and ", val_metric " in done.stderr
  # The steps of all epochs, and the time left.
  assert re.search(r"8/8 \[\d\d:\d\d<00:00", done.stderr)
  return output_dir


def test_a_training_leaves_its_course_and_what_it_came_to(whole):
  assert [epoch for epoch, _ in _epochs(whole)] == [0, 1, 2, 3]
  result = json.loads((whole / "result.json").read_text())
  assert (result["steps"], result["fresh_examples"]) == (8, 32)
  assert 0 <= result["val_metric"] <= 1
  assert json.loads((whole / "settings.json").read_text())["optimizer"] == "sgd"
  assert list((whole / "tensorboard").rglob("events.out.tfevents.*"))


def test_what_is_over_is_not_begun_again(whole):
  done = _run(whole, *WHOLE)
  assert done.returncode == 1
  message = f"error: --output_dir: {whole} has a training that is over"
  assert message in done.stderr


@pytest.mark.one_stack
def test_an_epoch_of_an_echo_on_stall_is_that_of_a_training_without(
  native_ops, tmp_path
):
  flags = ["--arm=on_stall", "--batch_size=256", "--length=2ep"]
  done = scripts.run("experiments.run", *flags, f"--output_dir={tmp_path}")
  assert done.returncode == 0, done.stderr
  # 1,297 examples make six batches.
  assert [epoch for epoch, _ in _epochs(tmp_path)] == [0, 1]
  assert json.loads((tmp_path / "result.json").read_text())["steps"] == 12


@pytest.mark.one_stack
def test_what_cannot_go_on_is_told_and_not_begun_again(tmp_path):
  flags = [*WHOLE, "--strategy=mirrored"]
  (tmp_path / "epochs.csv").write_text("epoch,loss\n0,2.3\n")
  done = _run(tmp_path, *flags)
  assert done.returncode == 1
  message = f"error: --output_dir: {tmp_path} has a training that was interr"
  assert message in done.stderr
  assert _epochs(tmp_path) == [(0, 2.3)]


@pytest.mark.one_stack
def test_who_reads_is_a_setting_that_is_not_to_change(whole, tmp_path):
  known = (whole / "settings.json").read_text()
  (tmp_path / "settings.json").write_text(known)
  with socket.create_server(("127.0.0.1", 0)) as server:
    address = f"127.0.0.1:{server.getsockname()[1]}"
    done = _run(tmp_path, *WHOLE, f"--data_service={address}")
  assert "training with service_echo=None, this is 'behind'" in done.stderr


@pytest.mark.one_stack
def test_an_interrupted_training_goes_on_and_takes_no_other_settings(
  tmp_path,
):
  process, log = _start(tmp_path, "--length=2000ba")
  _wait_for(2, tmp_path, process, log)
  process.kill()
  process.join()

  other = _run(tmp_path, "--length=2000ba", "--seed=1")
  assert "has a training with seed=0, this is 1" in other.stderr

  before, said = len(_epochs(tmp_path)), len(log.read_text())
  again, log = _start(tmp_path, "--length=2000ba")
  _wait_for(before + 1, tmp_path, again, log)
  again.terminate()
  again.join()
  assert again.exitcode == 128 + signal.SIGTERM
  # The last epoch is logged twice if its backup was not made yet.
  assert _epochs(tmp_path)[before][0] in (before - 1, before)
  done = [int(n) for n in re.findall(r"(\d+)/2000 ", log.read_text()[said:])]
  assert done[0] in (2 * before - 2, 2 * before)


@pytest.mark.parametrize(
  "flag, message",
  [
    ("--length=3", "`--length` must be a number and a unit"),
    ("--echo_buffer=15", "--echo_buffer: must be at least 16, two batches"),
    ("--length=8ba --warmup=9ba", "--length: `warmup` is a part of `total`"),
    (
      "--length=8ba --schedule=constant --warmup=9ba",
      "--length: the schedule of the learning rate has `warmup`=9 steps, and",
    ),
    (
      "--arm=on_stall --implementation=graph",
      "--implementation: on_stall needs native ops, got 'graph'",
    ),
    pytest.param(
      "--preset=paper --data_dir=/no/such",
      "cifar10 is not on this machine: there is no /no/such/cifar10",
      marks=needs_tensorflow_datasets,
    ),
  ],
)
def test_a_mistake_is_told_in_one_line(tmp_path, flag, message):
  done = _run(tmp_path, *flag.split())
  assert done.returncode == 1
  assert f"error: {message}" in done.stderr
  assert "Traceback" not in done.stderr
  assert not (tmp_path / "settings.json").exists()  # nothing to go on with


@pytest.mark.one_stack
def test_settings_that_cannot_be_read_are_named(tmp_path):
  settings = tmp_path / "settings.json"
  settings.write_text("{")
  done = _run(tmp_path, "--length=8ba")
  assert done.returncode == 1
  assert f"error: --output_dir: {settings}: Expecting" in done.stderr
  assert "Traceback" not in done.stderr
