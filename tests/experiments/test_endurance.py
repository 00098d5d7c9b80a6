"""Short forms of the long runs."""


import pytest
import scripts

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
  flags = ["--elements=10000", "--iterators=10", f"--output={output}"]
  done = scripts.run("experiments.endurance", *flags)
  assert done.returncode == 0, done.stderr
  assert len(output.read_text().splitlines()) == 1
