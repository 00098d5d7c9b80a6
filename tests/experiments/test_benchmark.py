"""The benchmarks' arithmetic and verdicts. Nothing is timed here."""

import itertools
import json
import re
import sys

import pytest
import scripts
import tensorflow as tf

import tfecho
from experiments import benchmark
from experiments.benchmark import drive, ideal, runner


def replayed(costs, log=None, name=None):
  """A contender that `costs` these, and notes in `log` when it is asked."""
  def start():
    upcoming = iter(costs)

    def probe():
      if log is not None:
        log.append(name)
      return next(upcoming)

    return probe

  return start


def case(ours, other, *, at_most=None, compare="ratio", max_rounds=None):
  return runner.Case(
    what="scalars",
    unit="us",
    contenders={"ours": replayed(ours), "other": replayed(other)},
    bounds=[runner.Bound("ours", "other", at_most, compare)],
    max_rounds=max_rounds,
  )


def row(ours, other, at_most=None, compare="ratio"):
  """The row of a case measured for as many rounds as there are costs."""
  measured_case = case(ours, other, at_most=at_most, compare=compare)
  [measured] = runner.measure([measured_case], len(ours))
  return measured


class TestInterleave:
  def test_contenders_take_turns_round_by_round(self):
    log = []
    runner.interleave(
      {name: replayed(itertools.count(), log, name) for name in "ABC"}, 3
    )
    assert "".join(log) == "ABCABCABC"

  def test_costs_are_kept_by_contender_in_the_order_of_the_rounds(self):
    contenders = {"A": replayed([1, 2, 3]), "B": replayed([4, 5, 6])}
    assert runner.interleave(contenders, 2) == {"A": [1, 2], "B": [4, 5]}

  def test_costs_of_one_measurement_are_kept_by_name(self):
    both = [{"waiting": 1, "copies": 2}, {"waiting": 3, "copies": 4}]
    contenders = {"A": replayed(both), "B": replayed([5, 6])}
    assert runner.interleave(contenders, 2) == {
      "A, waiting": [1, 3], "A, copies": [2, 4], "B": [5, 6],
    }

  def test_every_contender_gets_ready_once_before_any_is_measured(self):
    log = []

    def start(name):
      log.append(f"start {name}")
      return lambda: log.append(name)

    runner.interleave({n: lambda n=n: start(n) for n in "AB"}, 2)
    assert log == ["start A", "start B", "A", "B", "A", "B"]


class TestRatio:
  def test_is_the_median_of_the_ratios_within_the_rounds(self):
    # Ratios 1/2, 1/4, 3: the ratio of the medians would be 2/4.
    assert row([1, 2, 9], [2, 8, 3]).value == 0.5

  def test_does_not_move_when_a_round_is_slow_for_both(self):
    assert row([1, 1, 1], [2, 2, 2]).value == row([1, 50, 1], [2, 100, 2]).value

  def test_does_not_move_when_one_measurement_in_three_is_disturbed(self):
    assert row([1, 900, 1], [2, 2, 2]).value == 0.5


class TestOtherComparisons:
  def test_an_excess_is_the_median_difference_within_the_rounds(self):
    assert row([3, 5, 9], [1, 4, 2], compare="excess").value == 2

  # ours beside 100, how far that is off
  @pytest.mark.parametrize(("ours", "off"), [(103, 0.03), (97, 0.03)])
  def test_a_deviation_counts_in_both_directions(self, ours, off):
    measured = row([ours], [100], compare="deviation")
    assert measured.value == pytest.approx(off)

  def test_deviations_in_both_directions_even_out_over_the_rounds(self):
    measured = row([90, 101, 110], [100] * 3, compare="deviation")
    assert measured.value == pytest.approx(0.01)

  # comparison, bound, whether 104 beside 100 keeps it
  @pytest.mark.parametrize(
    ("compare", "at_most", "ok"),
    [
      ("excess", 4, True), ("excess", 3, False),
      ("deviation", 0.05, True), ("deviation", 0.03, False),
    ],
  )
  def test_the_verdict_is_on_what_is_compared(self, compare, at_most, ok):
    assert row([104], [100], at_most, compare).ok is ok

  def test_the_table_shows_a_deviation_in_per_cent(self):
    line = runner.table([row([104], [100], 0.05, "deviation")]).splitlines()[1]
    assert line.split()[-3:] == ["4.0%", "5.0%", "yes"]


class TestVerdict:
  # at_most, ratio is 0.5, whether the bound is kept
  @pytest.mark.parametrize(
    ("at_most", "ok"),
    [(0.6, True), (0.5, True), (0.499, False), (None, True)],
  )
  def test_a_bound_is_kept_up_to_and_including_its_value(self, at_most, ok):
    assert row([1], [2], at_most).ok is ok

  def test_the_exit_status_is_zero_when_every_bound_is_kept(self):
    assert runner.exit_status([row([1], [2], 0.6), row([9], [1])]) == 0

  def test_one_missed_bound_makes_the_exit_status_one(self):
    rows = [row([1], [2], 0.6), row([1], [1], 0.9), row([1], [2], 0.6)]
    assert runner.exit_status(rows) == 1


class TestMeasure:
  def test_gives_one_row_per_bound_from_the_same_rounds(self):
    contenders = {
      "fast": replayed([1, 1]), "middle": replayed([2, 2]),
      "slow": replayed([8, 8]),
    }
    bounds = [runner.Bound("fast", "slow"), runner.Bound("middle", "slow")]
    rows = runner.measure([runner.Case("x", "us", contenders, bounds)], 2)
    assert [r.value for r in rows] == [1 / 8, 1 / 4]
    assert [r.bound for r in rows] == bounds

  # rounds asked for, the case's own limit, rounds measured
  @pytest.mark.parametrize(
    ("rounds", "limit", "measured"), [(7, None, 7), (7, 3, 3), (2, 3, 2)]
  )
  def test_a_case_can_ask_for_fewer_rounds(self, rounds, limit, measured):
    endless = [itertools.count(1), itertools.count(1)]
    [r] = runner.measure([case(*endless, max_rounds=limit)], rounds)
    assert len(r.ours) == len(r.other) == measured

  def test_every_comparison_is_told_as_soon_as_it_is_known(self):
    lines = []
    runner.measure([case([3], [4]), case([1], [2])], 1, on_case=lines.append)
    assert ["0.75" in lines[0], "0.5" in lines[1]] == [True, True]


class TestTable:
  def test_shows_who_was_compared_the_costs_the_ratio_and_the_verdict(self):
    kept, missed, reported = runner.table(
      [row([1], [2], 0.6), row([3], [2], 0.6), row([3], [2])]
    ).splitlines()[1:]
    assert re.split(r"\s{2,}", kept) == [
      "scalars [us]", "ours: 1", "other: 2", "0.5", "0.6", "yes",
    ]
    assert missed.split()[-3:] == ["1.5", "0.6", "NO"]
    assert reported.split()[-3:] == ["1.5", "-", "-"]

  def test_columns_line_up(self):
    long = runner.Case(
      "a much longer title", "us", {"a": replayed([1]), "b": replayed([1])},
      [runner.Bound("a", "b")],
    )
    lines = runner.table(runner.measure([case([1], [2]), long], 1)).splitlines()
    assert len({line.index(m) for line, m in zip(
      lines, ["ours", "ours: 1", "a: 1"]
    )}) == 1


class TestJson:
  def test_holds_every_measurement_and_what_is_needed_to_judge_it(
    self, tmp_path
  ):
    path = tmp_path / "benchmark.json"
    runner.write_json(path, [row([1, 2], [2, 4], 0.6), row([3], [2])])
    record = json.loads(path.read_text())
    assert record["rows"][0] == {
      "what": "scalars",
      "unit": "us",
      "bound": {
        "ours": "ours", "other": "other", "at_most": 0.6, "compare": "ratio",
      },
      "ours": [1, 2],
      "other": [2, 4],
      "value": 0.5,
      "ok": True,
    }
    assert record["rows"][1]["bound"]["at_most"] is None
    assert record["versions"]["python"] == sys.version.split()[0]
    assert record["versions"]["tensorflow"] == tf.__version__
    assert record["versions"]["tfecho"] == tfecho.__version__
    assert record["cpu"]
    assert re.match(r"\d{4}-\d\d-\d\dT", record["date"])


class TestDrive:
  # dataset stages that take a short cut when told to skip
  @pytest.mark.parametrize(
    "stage",
    [
      lambda ds: ds,
      lambda ds: ds.repeat(1),
      lambda ds: ds.prefetch(2),
      lambda ds: ds.flat_map(tf.data.Dataset.from_tensors),
    ],
    ids=["map", "repeat", "prefetch", "flat_map"],
  )
  def test_strides_make_every_element_that_they_do_not_hand_out(self, stage):
    made = []

    def make(x):
      made.append(int(x))
      return x

    dataset = tf.data.Dataset.range(20).map(
      lambda x: tf.numpy_function(make, [x], tf.int64)
    )
    strided = drive.in_strides(stage(dataset), 5)
    assert [int(x) for x in strided] == [0, 5, 10, 15]
    assert made == list(range(20))

  def test_the_idiom_repeats_every_element_in_place(self):
    dataset = tf.data.Dataset.range(3).apply(drive.idiom(2))
    assert [int(x) for x in dataset] == [0, 0, 1, 1, 2, 2]


class TestSuites:
  @pytest.mark.parametrize("suite", benchmark.SUITES)
  def test_every_bound_names_contenders_of_its_case(self, suite):
    for case in _cases(suite):
      for bound in case.bounds:
        for name in (bound.ours, bound.other):
          assert any(
            name == contender or name.startswith(f"{contender}, ")
            for contender in case.contenders
          ), (case.what, name)

  @pytest.mark.parametrize("suite", benchmark.SUITES)
  def test_titles_tell_the_cases_apart(self, suite):
    titles = [case.what for case in _cases(suite)]
    assert len(set(titles)) == len(titles)

  @pytest.mark.parametrize("suite", benchmark.SUITES)
  def test_something_is_bounded(self, suite):
    bounds = [bound for case in _cases(suite) for bound in case.bounds]
    assert any(bound.at_most is not None for bound in bounds)


class TestIdeal:
  # echoing factor, milliseconds per fresh element where R = 60 / 15 = 4
  @pytest.mark.parametrize(
    ("factor", "ms"), [(1, 60), (2, 60), (4, 60), (6, 90)]
  )
  def test_is_what_the_slower_side_takes(self, factor, ms, monkeypatch):
    monkeypatch.setattr(ideal, "_sleep_ms", float)
    case = ideal.cases()[ideal.FACTORS.index(factor)]
    probe = case.contenders["max(t_up, e t_down)"]()
    assert probe() == ms


class TestCommandLine:
  def test_help_names_every_flag_and_suite(self):
    text = scripts.run("experiments.benchmark", "--help").stdout
    text = "".join(text.split())  # Its lines are broken anywhere.
    flags = ["--suite", "--case", "--rounds", "--output"]
    missing = [w for w in [*benchmark.SUITES, *flags] if w not in text]
    assert not missing

  # a bad flag, what the error names
  @pytest.mark.parametrize(
    ("flag", "named"),
    [
      ("--suite=tea", "tea"),
      ("--rounds=0", "rounds"),
      ("--rounds=many", "many"),
      ("--case=nothing", "matches none of\n  scalars"),
      ("--case=(", "--case=("),
    ],
  )
  def test_a_bad_value_is_refused(self, flag, named):
    result = run_fake_suite(1.0, flag)
    assert result.returncode not in (0, None)
    assert named in result.stdout + result.stderr

  def test_repeats_is_another_name_for_rounds(self, tmp_path):
    output = tmp_path / "benchmark.json"
    run_fake_suite(1.0, f"--output={output}", "--repeats=2")
    [row] = json.loads(output.read_text())["rows"]
    assert row["ours"] == [1.0] * 2

  # cost, exit status where the bound is 0.5 of 2.0
  @pytest.mark.parametrize(("cost", "status"), [(1.0, 0), (1.1, 1)])
  def test_exit_status_and_output_tell_a_kept_bound_from_a_missed_one(
    self, cost, status, tmp_path
  ):
    output = tmp_path / "new" / "benchmark.json"
    result = run_fake_suite(cost, f"--output={output}", "--rounds=3")
    assert result.returncode == status, result.stderr
    [row] = json.loads(output.read_text())["rows"]
    assert row["ok"] is (status == 0)
    assert row["ours"] == [cost] * 3
    assert result.stdout.splitlines()[0].split() == [
      "what", "ours", "other", "compared", "bound", "ok",
    ]


def run_fake_suite(cost, *flags):
  return scripts.run("fake_suite", str(cost), *flags)


def _cases(suite):
  return benchmark.load(suite).cases()
