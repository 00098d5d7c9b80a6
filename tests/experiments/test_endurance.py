"""Short forms of the long runs."""

import json

import pytest
import scripts

from experiments.endurance import kills, models, soak

MEGABYTES = 2


def test_elements_and_iterators_leave_neither_memory_nor_threads_behind(
  native_ops, tmp_path
):
  # In a process of its own: what the tests before left running grows, too.
  output = tmp_path / "endurance.jsonl"
  flags = ["--elements=100000", "--iterators=200", f"--output={output}"]
  done = scripts.run("experiments.endurance", "--run=soak", *flags)
  assert done.returncode == 0, done.stderr
  (line,) = output.read_text().splitlines()
  figures = json.loads(line)["figures"]
  assert set(figures) == set(soak.TRANSFORMATIONS)
  for added in figures.values():
    assert set(added) == {"100000 elements", "200 iterators"}
    for growth in added.values():
      assert growth["megabytes"] < MEGABYTES
      assert growth["threads"] <= 0


KEEPING = """
import json
from experiments.endurance import soak
soak.TRANSFORMATIONS["cache"] = lambda data: data.cache()
print(json.dumps(soak.elements("cache", 100 * soak.STRIDE)))
"""


def test_elements_that_are_kept_show():
  # In a process of its own: here, they go where those of other tests were.
  done = scripts.execute(KEEPING)
  assert done.returncode == 0, done.stderr
  added = json.loads(done.stdout)
  assert added["megabytes"] > 2 * MEGABYTES


def test_memory_that_is_taken_once_does_not_show():
  held = []

  def grow_once():
    if len(held) == 50:
      held.append(bytes(range(256)) * 80_000)  # 20 megabytes, written to
    held.append(None)

  assert soak._added(grow_once, 100)["megabytes"] < MEGABYTES


@pytest.mark.one_stack
def test_a_training_that_is_killed_goes_on(native_ops, tmp_path):
  figures = kills.run(tmp_path, kills=2, seed=0)
  assert figures["kills"] == 2


@pytest.fixture
def fake_models(tmp_path, monkeypatch):
  """Puts tests of one's own in place of those of the models."""
  monkeypatch.setattr(models, "ROOT", tmp_path)
  (tmp_path / "tests").mkdir()
  return (tmp_path / "tests" / "test_models.py").write_text


def test_random_uses_are_as_many_as_wanted_and_new(fake_models, monkeypatch):
  monkeypatch.setenv("CI", "true")
  fake_models(
    "import os\n"
    "def test_a(): assert os.environ['TFECHO_MODEL_CASES'] == '5'\n"
    "def test_b(): assert 'CI' not in os.environ\n"
  )
  assert models.run(5) == {"cases": 5, "kinds": 2}


def test_a_use_that_differs_from_its_model_is_shown(fake_models):
  fake_models("def test_a(): assert 'use' == 'model'\n")
  with pytest.raises(RuntimeError, match="'use' == 'model'"):
    models.run(5)
