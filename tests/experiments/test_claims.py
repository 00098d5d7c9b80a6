import pathlib

import pytest
import scripts

from experiments import claims, comparisons
from experiments.claims.evidence import FAILS, HOLDS, IN_PART, UNTESTED, Tally
from experiments.seeds import Seeds

ROOT = pathlib.Path(__file__).parents[2]
RECORDED = [
  f"experiments/results/{name}.jsonl"
  for name in (
    "digits",
    "schedules",
    "on_stall",
    "buffers/digits",
    "batch_sizes/digits_16",
    "batch_sizes/digits_64",
    "fashion/fashion_mnist",
    "fashion/shuffled_batches",
    "fashion/ceiling",
    "fashion/final",
    "fashion_deep/resnet32",
    "lm1b/spoken",
    "lm1b/shuffled_wider",
    "common_crawl/written",
    "ssd/scenes",
  )
]


@pytest.fixture
def runs(make_record):
  """Returns a function that makes three seeds, a little apart."""

  def make(kind, consumed, *, factor=4, **changed):
    return [
      make_record(kind, factor, seed=seed, consumed=value, **changed)
      for seed, value in enumerate((consumed, consumed - 1, consumed + 1))
    ]

  return make


def _verdict(number, finished):
  (recorded,) = claims.group(finished)
  return claims.judge(recorded)[number - 1]


@pytest.mark.parametrize(
  "right, clear, total, answer",
  [
    (0, 0, 0, UNTESTED),
    (4, 2, 4, HOLDS),
    (4, 1, 4, IN_PART),  # within the spread of the seeds
    (3, 3, 4, IN_PART),
    (2, 2, 4, FAILS),
    (0, 0, 1, FAILS),
  ],
)
def test_an_answer_needs_all_to_be_right_and_half_of_it_clearly(
  right, clear, total, answer
):
  assert Tally(right, clear, total).answer == answer


def test_a_comparison_is_clear_beyond_the_spread_of_the_seeds():
  for larger, smaller, counted in [
    ((10, 11, 12), (5, 6, 7), (1, 1, 1)),
    ((10, 11, 12), (5, 10.5, 11), (1, 0, 1)),
    ((5, 6, 7), (10, 11, 12), (0, 0, 1)),
    ((float("inf"),) * 3, (10, 11, 12), (1, 1, 1)),
    ((float("inf"),) * 3, (float("inf"),) * 3, (0, 0, 0)),
  ]:
    tally = Tally()
    tally.add(Seeds.of(larger), Seeds.of(smaller))
    assert (tally.right, tally.clear, tally.total) == counted


@pytest.mark.parametrize(
  "decode, augment, batch, answer",
  [
    (300, 500, 900, HOLDS),
    (500, 300, 900, IN_PART),  # not in order
    (300, 500, 1900, IN_PART),  # the last costs
    (1900, 1700, 1500, FAILS),
  ],
)
def test_placements_have_to_save_and_to_be_in_order(
  runs, decode, augment, batch, answer
):
  finished = [
    *runs("baseline", 1000),
    *runs("after_decode", decode),
    *runs("after_augment", augment),
    *runs("after_batch", batch),
  ]
  assert _verdict(1, finished).answer == answer


def test_placements_are_judged_at_the_target_that_the_baseline_reaches(
  runs, make_record
):
  missed = make_record(seed=3, metric=0.6)
  finished = [
    *runs("baseline", 1000),
    *runs("after_decode", 300),
    *runs("after_batch", 500),
  ]
  assert "to 0.9:" in _verdict(1, finished).found
  assert "to 0.5:" in _verdict(1, [*finished, missed]).found


def test_an_order_within_the_spread_of_the_seeds_holds_in_part(runs):
  finished = [
    *runs("baseline", 1000),
    *runs("after_decode", 499),
    *runs("after_augment", 500),
  ]
  verdict = _verdict(1, finished)
  assert verdict.answer == IN_PART
  assert "1 of 1, 0 clearly" in verdict.found
  assert "--seeds" in verdict.missing


def test_two_seeds_or_no_baseline_say_nothing(runs):
  echoes = [*runs("after_decode", 300), *runs("after_augment", 500)]
  assert _verdict(1, echoes).answer == UNTESTED
  few = [run for run in echoes if run["settings"]["seed"] < 2]
  assert _verdict(1, [*runs("baseline", 1000), *few]).answer == UNTESTED


@pytest.mark.parametrize(
  "consumed, answer",
  [(250, HOLDS), (400, IN_PART), (800, FAILS)],  # of 1000, at e = 4
)
def test_a_repeat_is_judged_on_imagenet(runs, consumed, answer):
  size = {"workload": "resnet50_imagenet", "preset": "paper"}
  finished = [
    *runs("baseline", 1000, **size),
    *runs("after_decode", consumed, **size),
  ]
  assert _verdict(2, finished).answer == answer


def test_elsewhere_the_worth_of_a_repeat_is_told_without_a_verdict(runs):
  finished = [*runs("baseline", 1000), *runs("after_decode", 400)]
  verdict = _verdict(2, finished)
  assert verdict.answer == UNTESTED
  assert "50% at e = 4" in verdict.found  # (2.5 - 1) / (4 - 1)
  assert "resnet50_imagenet" in verdict.missing


@pytest.mark.parametrize(
  "smaller, larger, answer",
  [(900, 500, HOLDS), (500, 900, FAILS), (900, 899, IN_PART)],
)
def test_batch_echo_is_compared_over_batch_sizes(runs, smaller, larger, answer):
  finished = [
    *runs("baseline", 1000),
    *runs("after_batch", smaller),
    *runs("baseline", 1000, batch_size=16),
    *runs("after_batch", larger, batch_size=16),
  ]
  assert _verdict(3, finished).answer == answer
  assert _verdict(3, finished[:6]).answer == UNTESTED


@pytest.mark.parametrize(
  "unshuffled, small, large, answer",
  [
    # The damage at e = 4 is what is above 250.
    (850, 700, 300, HOLDS),
    (850, 300, 700, FAILS),  # larger is worse, and repairs a quarter
    (850, 800, 700, IN_PART),  # better, but no more than a quarter
    (850, 900, 950, FAILS),
  ],
)
def test_a_shuffle_has_to_repair_most_and_a_larger_one_more(
  runs, unshuffled, small, large, answer
):
  finished = [
    *runs("baseline", 1000),
    *runs("after_decode_unshuffled", unshuffled),
    *runs("after_decode", small),
    *runs("after_decode", large, echo_buffer=64),
  ]
  verdict = _verdict(4, finished)
  assert verdict.answer == answer
  repaired = (unshuffled - large) / 600
  assert f"repairs {repaired:.0%} of the damage" in verdict.found
  assert _verdict(4, finished[:6]).answer == UNTESTED


@pytest.mark.parametrize(
  "needed, answer, said",
  [
    ((500, 250, 300), HOLDS, "no more beyond 4"),
    ((500, 250, 125), IN_PART, "2x, 4x, 8x at e = 2, 4, 8"),  # no limit seen
    ((500, 600, 700), IN_PART, "no more beyond 2"),  # no growth seen
    ((1100, 1200, 1300), FAILS, "no more beyond 1"),
  ],
)
def test_gains_have_to_grow_up_to_a_limit(runs, needed, answer, said):
  finished = [
    *runs("baseline", 1000),
    *runs("after_decode", needed[0], factor=2),
    *runs("after_decode", needed[1], factor=4),
    *runs("after_decode", needed[2], factor=8),
  ]
  verdict = _verdict(5, finished)
  assert verdict.answer == answer
  assert said in verdict.found


@pytest.mark.parametrize(
  "metrics, answer",
  [
    ((0.80, 0.79), HOLDS),  # the worst seed of the baseline has 0.79
    ((0.80, 0.78, 0.79), IN_PART),
    ((0.80, 0.78), FAILS),
    ((0.70, 0.78), FAILS),
  ],
)
def test_quality_is_held_to_the_worst_seed_of_the_baseline(
  make_record, metrics, answer
):
  finished = [
    make_record(measure="final", seed=seed, metric=metric)
    for seed, metric in enumerate((0.8, 0.79, 0.81))
  ]
  for factor, metric in zip((2, 4, 8), metrics):
    finished += [
      make_record(
        "after_batch", factor, measure="final", seed=seed, metric=metric
      )
      for seed in range(3)
    ]
  assert _verdict(6, finished).answer == answer


def test_a_cache_is_no_echo(make_record, runs):
  finished = [
    make_record(kind, measure="final", seed=seed, metric=metric)
    for kind, metric in [("baseline", 0.8), ("after_batch", 0.8), ("cached", 0)]
    for seed in range(3)
  ]
  assert "1 of 1 echoes" in _verdict(6, finished).found
  assert not _verdict(7, runs("cached", 10, upstream_ms=4.0)).found
  timed = [
    *runs("baseline", 1000, upstream_ms=4.0),
    *runs("cached", 500, upstream_ms=4.0),
  ]
  assert not _verdict(7, timed).found


def test_quality_of_a_loss_is_the_lower_the_better(make_record):
  def final(kind, seed, metric):
    run = make_record(kind, measure="final", seed=seed, metric=metric)
    run["metric"]["maximize"] = False
    return run

  baseline = [final("baseline", seed, 4.0 + seed) for seed in range(3)]
  better = [final("after_batch", seed, 3.0) for seed in range(3)]
  worse = [final("after_batch", seed, 6.5) for seed in range(3)]
  assert _verdict(6, baseline + better).answer == HOLDS
  assert _verdict(6, baseline + worse).answer == FAILS


@pytest.mark.parametrize(
  "seconds, answer", [(10.0, HOLDS), (20.0, IN_PART), (50.0, FAILS)]
)
def test_wall_time_is_judged_on_imagenet(runs, seconds, answer):
  size = {"workload": "resnet50_imagenet", "preset": "paper"}
  finished = runs("baseline", 1000, upstream_ms=4.0, **size)
  echoes = runs("after_decode", 500, upstream_ms=4.0, **size)
  for some, value in ((finished, 40.0), (echoes, seconds)):
    for run in some:
      run["curve"]["seconds"] = 3 * [value]
  assert _verdict(7, finished + echoes).answer == answer


def test_elsewhere_the_best_fixed_echo_is_told_without_a_verdict(runs):
  finished = [
    *runs("baseline", 1000, upstream_ms=4.0),
    *runs("after_decode", 500, upstream_ms=4.0),
    *runs("on_stall", 500, upstream_ms=4.0),
  ]
  verdict = _verdict(7, finished)
  assert verdict.answer == UNTESTED
  assert "1.0 times (after_decode e=4" in verdict.found


@pytest.mark.parametrize(
  "ended, found",
  [
    # It took as many as the baseline did, and did not arrive.
    (1_000, "to 0.9: no more than without an echo in 1 of 2"),
    # It came to its last step on fewer: nobody knows.
    (300, "to 0.5: no more than without an echo in 2 of 2"),
  ],
)
def test_what_ended_too_early_to_tell_is_judged_by_an_easier_target(
  runs, ended, found
):
  finished = [
    *runs("baseline", 900),
    *runs("after_decode", ended, metric=0.6),
    *runs("after_batch", 400),
  ]
  assert _verdict(1, finished).found.startswith(found)


def test_workloads_and_versions_are_judged_apart(make_record):
  older = make_record()
  older["environment"] = {**older["environment"], "tensorflow": "2.15.1"}
  elsewhere = make_record(seed=1)
  elsewhere["environment"] = {**elsewhere["environment"], "cpu": "other"}
  finished = [make_record(), make_record(preset="fashion"), older, elsewhere]
  titles = [recorded.title for recorded in claims.group(finished)]
  assert titles == [
    "resnet32_cifar10 small, TensorFlow 2.21.0, 2 runs:",
    "resnet32_cifar10 fashion, TensorFlow 2.21.0, 1 runs:",
    "resnet32_cifar10 small, TensorFlow 2.15.1, 1 runs:",
  ]


def test_the_overview_has_a_column_of_answers_for_every_training(runs):
  finished = [
    *runs("baseline", 1000),
    *runs("after_decode", 300),
    *runs("after_batch", 500),
    *runs("baseline", 1000, preset="fashion"),
  ]
  header, _, first, *others = claims.overview(
    claims.group(finished)
  ).splitlines()
  assert header == (
    "| claim | resnet32_cifar10 small, TensorFlow 2.21.0"
    " | resnet32_cifar10 fashion, TensorFlow 2.21.0 |"
  )
  assert first.startswith("| 1. Every placement")
  assert first.endswith(f"| {HOLDS} | {UNTESTED} |")
  assert len(others) == 6


def test_the_readme_shows_what_the_records_say():
  recorded = claims.group(comparisons.load(ROOT / path for path in RECORDED))
  readme = (ROOT / "experiments" / "README.md").read_text()
  assert claims.overview(recorded) in readme
  for one in recorded:
    assert claims.markdown(one).split("\n\n")[1] in readme


def test_the_script_prints_tables_or_says_what_is_broken(make_record, tmp_path):
  broken = tmp_path / "broken.jsonl"
  broken.write_text('{"format": 1')
  files = ",".join([RECORDED[0], str(broken)])
  done = scripts.run("experiments.claims", f"--results={files}")
  assert done.returncode == 1 and not done.stdout
  last = done.stderr.splitlines()[-1]
  assert last.startswith(f"error: {broken}:1: not the record of a run")
