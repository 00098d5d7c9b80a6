"""Short forms of the long runs."""

import subprocess
import sys

import pytest

from experiments.endurance import kills, soak

MEGABYTES = 5


@pytest.mark.parametrize("name", soak.TRANSFORMATIONS)
def test_elements_leave_neither_memory_nor_threads_behind(native_ops, name):
  added = soak.elements(name, 100 * soak.STRIDE)
  assert added["megabytes"] < MEGABYTES
  assert added["threads"] <= 0


@pytest.mark.parametrize("name", soak.TRANSFORMATIONS)
def test_iterators_leave_neither_memory_nor_threads_behind(native_ops, name):
  added = soak.iterators(name, 200)
  assert added["megabytes"] < MEGABYTES
  assert added["threads"] <= 0


def test_a_training_that_is_killed_goes_on(native_ops, tmp_path):
  figures = kills.run(tmp_path, kills=2, seed=0)
  assert figures["kills"] == 2


def test_the_command_line_adds_figures_to_a_file(native_ops, tmp_path):
  output = tmp_path / "endurance.jsonl"
  command = ["-m", "experiments.endurance", "--elements=10000"]
  done = subprocess.run(
    [sys.executable, *command, "--iterators=10", f"--output={output}"],
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stderr
  assert len(output.read_text().splitlines()) == 1
