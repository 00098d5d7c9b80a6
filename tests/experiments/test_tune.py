"""The search for learning rates as a person starts it, killed and continued."""

import collections
import os
import pathlib
import select
import signal
import time

import pytest
import scripts
from absl import flags
from absl.testing import flagsaver
from processes import PATIENCE

from experiments import learning_rates, records, tune

TINY = [
  "--arm=baseline,after_batch",  # As it is called in `experiments.run`.
  "--trials=2",  # So that there is still much to do behind the first one.
  "--seeds=1",
  "--max_steps=3",
  "--evaluation_steps=1",
  "--targets=0.001",
  "--implementation=graph",
  "--workers=2",  # Side by side.
]


def _flags(directory):
  return [
    *TINY,
    f"--output_dir={directory}",
    f"--learning_rates={directory}/made/rates.json",
  ]


def _kill_after_the_first_trial(directory):
  """Returns what was recorded by then."""
  log = directory.with_suffix(".log")
  process = scripts.start(
    "experiments.tune", *_flags(directory), out=log, err=log
  )
  path = directory / "trials.jsonl"
  while not (path.exists() and b"\n" in path.read_bytes()):
    assert process.is_alive(), log.read_text()
    time.sleep(0.05)
  children = f"/proc/{process.pid}/task/{process.pid}/children"
  workers = map(int, pathlib.Path(children).read_text().split())
  ends = [os.pidfd_open(pid) for pid in workers]
  os.kill(process.pid, signal.SIGKILL)
  process.join()
  for end in ends:
    assert select.select([end], [], [], PATIENCE)[0], "a worker stays behind"
    os.close(end)
  return path.read_bytes()


@pytest.mark.one_stack
@pytest.mark.skipif(not os.path.exists("/proc"), reason="needs Linux")
def test_a_search_that_is_killed_goes_on_and_comparisons_find_its_rates(
  tmp_path,
):
  directory = tmp_path / "tune"
  before = _kill_after_the_first_trial(directory)
  done = scripts.run("experiments.tune", *_flags(directory))
  assert done.returncode == 0, done.stderr
  path = directory / "trials.jsonl"
  assert path.read_bytes().startswith(before)

  trials = [records.settings_of(record) for record in records.load(path)]
  tried = collections.defaultdict(list)
  for trial in trials:
    tried[trial.arm.kind].append(trial)
  counts = {kind: len(trials) for kind, trials in tried.items()}
  assert counts == {"baseline": 2, "after_batch": 2}
  entries = learning_rates.load(directory / "made" / "rates.json")
  for kind, trials in tried.items():
    found = [learning_rates.of_run(entries, trial) for trial in trials]
    (entry,) = filter(None, found)  # of the better one
    assert entry["kind"] == kind
    rates = {f"{trial.learning_rate:g}" for trial in trials}
    assert set(entry["trials"]) == rates


def test_every_arm_is_tried_with_the_same_rates_and_seeds():
  with flagsaver.flagsaver():
    flags.FLAGS(
      [
        "tune",
        "--arms=baseline,after_decode,after_batch",
        "--factors=2,4",
        "--trials=5",
        "--seeds=2",
        "--measure=target,final",
        "--implementation=graph",
      ]
    )
    trials = tune.planned_trials()
  tried = collections.defaultdict(set)
  for trial in trials:
    one = (trial.learning_rate, trial.seed)
    tried[trial.measure, str(trial.arm)].add(one)
  assert len(tried) == 2 * 5
  first, *others = tried.values()
  assert len(first) == 5 * 2 and all(other == first for other in others)
  assert len(trials) == 10 * len(first)
  # Those of comparisons are below.
  assert {seed for _, seed in first} == {1_000, 1_001}


@pytest.mark.parametrize(
  "grid, named",
  [
    ("", "none"),
    ("0.001,0", "0.001,0"),
    ("0.001,-1", "0.001,-1"),
    ("nan", "nan"),
    ("inf", "inf"),
    ("0.001,1e-3", "0.001,1e-3"),
  ],
)
def test_a_grid_has_rates_above_zero_each_once(flags_as_given, grid, named):
  flags.FLAGS["grid"].parse(grid)
  with pytest.raises(ValueError, match=f"^--grid: must be .*, got {named}$"):
    tune.planned_trials()


@pytest.mark.one_stack
def test_a_file_that_takes_no_rates_is_refused_before_any_trial(tmp_path):
  (tmp_path / "rates.json").write_text('{"entries": [{')
  directory = tmp_path / "tune"
  done = scripts.run(
    "experiments.tune",
    f"--output_dir={directory}",
    f"--learning_rates={tmp_path}/rates.json",
  )
  assert done.returncode == 1
  assert "error: --learning_rates: " in done.stderr
  assert not directory.exists()
