import pathlib

import pytest
import scripts

from experiments import comparisons, pacing, summary, tables
from experiments.arms import Arm
from experiments.formatting import spread
from experiments.seeds import Seeds
from experiments.store import runs as stored_runs
from experiments.summary import Spread
from experiments.sweeps import BUFFERS, by_buffer

ROOT = pathlib.Path(__file__).parents[2]
# What the README shows as tables: the files, and the targets.
SHOWN = [
  ("digits.jsonl", (0.97, 0.985, 0.99)),
  (
    "fashion/fashion_mnist.jsonl,fashion/shuffled_batches.jsonl",
    (0.83, 0.84),
  ),
  ("batch_sizes/digits_16.jsonl", ()),
  ("batch_sizes/digits_64.jsonl", ()),
  ("fashion/ceiling.jsonl", (0.84, 0.86, 0.88)),
  ("fashion/final.jsonl", ()),
  ("fashion_deep/resnet32.jsonl", (0.75, 0.78, 0.8)),
  ("lm1b/spoken.jsonl,lm1b/shuffled_wider.jsonl", (4.3, 4.2, 4.1)),
  ("common_crawl/written.jsonl", (4.1, 4.0, 3.9)),
  ("ssd/scenes.jsonl", (0.3, 0.4, 0.45)),
  ("schedules.jsonl", ()),
]


@pytest.fixture
def runs(make_record):
  """Returns a function that makes a run for each number of fresh examples."""

  def make(kind, *consumed, **changed):
    return [
      make_record(kind, consumed=value, seed=seed, **changed)
      for seed, value in enumerate(consumed)
    ]

  return make


def test_an_arm_is_a_row_of_medians_and_ranges(runs):
  (table,) = tables.tables(
    [
      *runs("baseline", 900, 800, 1_000, targets=(0.9, 0.95), max_steps=40),
      *runs("after_decode", 310, 290, 300, targets=(0.9, 0.95), max_steps=40),
    ],
    targets=(0.9, 0.95),
  )
  assert [line.split(" | ") for line in table.splitlines()[2:]] == [
    ["| baseline", "0.002", *2 * ["900 (800-1,000)", "1x"], "40 |"],
    ["| after_decode e=4", "0.002", *2 * ["300 (290-310)", "3x"], "40 |"],
  ]


def test_a_target_that_was_missed_has_no_number(runs, make_record):
  (table,) = tables.tables(
    [
      *runs("baseline", 900, 800, 1_000),
      *runs("after_decode", 300, 290),
      make_record("after_decode", seed=2, metric=0.1),
      *runs("after_batch", 300, 300, 300, metric=0.1),
    ]
  )
  _, _, _, decode, batch = table.splitlines()
  assert "| 300 (290-not reached) | 3x |" in decode
  assert "| not reached | - | not reached |" in batch


def test_without_one_that_every_baseline_reaches_it_is_the_easiest(runs):
  missed = runs("baseline", 900, metric=0.1, targets=(0.9, 0.95))
  (table,) = tables.tables(missed)
  assert "fresh examples to 0.9 |" in table and "not reached" in table


def test_a_target_that_was_not_recorded_is_refused(runs):
  with pytest.raises(ValueError, match="--targets: must be .* 0.9.* got 0.7"):
    tables.tables(runs("baseline", 900, 800), targets=(0.7,))


def test_what_does_not_compare_is_in_tables_of_its_own(runs):
  small, large = tables.tables(
    [*runs("baseline", 900), *runs("baseline", 700, batch_size=64)]
  )
  assert small.startswith("batch_size=8:\n\n| arm |") and "900" in small
  assert large.startswith("batch_size=64:\n\n| arm |") and "700" in large


def test_ends_of_schedules_are_metrics(runs):
  ended = runs("baseline", 900, measure="final", max_steps=400)
  (table,) = tables.tables(ended)
  header, _, row = table.splitlines()
  assert "validation accuracy after 400 steps" in header
  assert row == "| baseline | 0.002 | 0.950 | 900 |"


@pytest.mark.parametrize("files, targets", SHOWN)
def test_the_readme_shows_what_was_recorded(files, targets):
  readme = (ROOT / "experiments" / "README.md").read_text()
  results = ROOT / "experiments" / "results"
  found = comparisons.load(results / file for file in files.split(","))
  for shown in tables.tables(found, targets):
    *_, table = shown.split("\n\n")  # behind how it differs from others
    assert table in readme


@pytest.mark.parametrize(
  "file, rows_of",
  [
    ("digits.jsonl", summary.timed),
    ("on_stall.jsonl", summary.timed),
    ("store/digits.jsonl", stored_runs.summarize),
    ("augmentation/large_files.jsonl", pacing.rows),
  ],
)
def test_the_readme_shows_the_seconds_that_were_recorded(file, rows_of):
  readme = (ROOT / "experiments" / "README.md").read_text()
  for row in rows_of(comparisons.load([ROOT / "experiments/results" / file])):
    assert f"| {spread(row.seconds, digits=1)} |" in readme


def test_the_readme_shows_what_each_buffer_needs():
  readme = (ROOT / "experiments" / "README.md").read_text()
  results = ROOT / "experiments" / "results"
  finished = comparisons.load(
    [results / "digits.jsonl", results / "buffers" / "digits.jsonl"]
  )
  (sweep,) = BUFFERS.of(comparisons.split(finished, "target"))
  line = by_buffer(sweep)[Arm("decode", 4.0, True)]
  assert list(line) == [0, 64, 256, 512, 1024]
  for runs in line.values():
    needed = Spread.of(Seeds.to_target(runs, 0.99).values)
    assert f" % | {spread(needed)} |" in readme


def test_the_script_prints_them_or_names_the_flag(tmp_path):
  results = ROOT / "experiments" / "results" / "schedules.jsonl"
  done = scripts.run("experiments.tables", f"--results={results}")
  assert done.returncode == 0 and done.stdout.startswith("| arm |")
  missing = tmp_path / "none.jsonl"
  done = scripts.run("experiments.tables", f"--results={missing}")
  assert done.returncode == 1
  assert done.stderr.splitlines()[-1].startswith("error: --results: ")
