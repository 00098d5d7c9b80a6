import math

import pytest

from experiments import summary


def _needed(make_record, kind, *consumed, factor=4, **changed):
  return [
    make_record(kind, factor, seed=seed, consumed=value, **changed)
    for seed, value in enumerate(consumed)
  ]


def test_the_median_and_the_extremes_over_seeds(make_record):
  finished = _needed(make_record, "baseline", 900, 600, 1200)
  (row,) = summary.to_target(finished, 0.9)
  assert row.consumed == summary.Spread(900, 600, 1200)
  assert row.read == summary.Spread(910, 610, 1210)
  assert (row.runs, row.reached) == (3, 3)


def test_the_gain_is_the_ratio_of_medians_to_the_baseline(make_record):
  finished = [
    *_needed(make_record, "after_batch", 600, 400, 800),
    *_needed(make_record, "baseline", 900, 600, 1200),
  ]
  rows = summary.to_target(finished, 0.9)
  assert [(str(row.arm), row.gain) for row in rows] == [
    ("baseline", 1),
    ("after_batch e=4", 1.5),
  ]


def test_a_target_that_is_missed_counts_as_never(make_record):
  finished = [
    make_record(seed=0, consumed=900),
    make_record(seed=1, consumed=600),
    make_record(seed=2, consumed=700, metric=0.6),
  ]
  (row,) = summary.to_target(finished, 0.9)
  assert row.consumed == summary.Spread(900, 600, math.inf)
  assert (row.runs, row.reached) == (3, 2)


def test_there_is_no_gain_over_a_baseline_that_never_arrived(make_record):
  finished = [make_record(metric=0.6), make_record("after_batch", consumed=9)]
  rows = summary.to_target(finished, 0.9)
  assert [row.gain for row in rows] == [None, None]


def test_rows_go_from_the_baseline_down_the_pipeline(make_record):
  kinds = ["after_batch", "after_decode", "baseline", "after_augment"]
  finished = [make_record(kind, factor) for kind in kinds for factor in (8, 2)]
  assert [str(row.arm) for row in summary.to_target(finished, 0.9)] == [
    "baseline",
    "after_decode e=2",
    "after_decode e=8",
    "after_augment e=2",
    "after_augment e=8",
    "after_batch e=2",
    "after_batch e=8",
  ]


def test_measures_and_delays_are_kept_apart(make_record):
  finished = [
    make_record(consumed=100),
    make_record(consumed=200, measure="final"),
    make_record(consumed=300, upstream_ms=2.0),
  ]
  assert summary.to_target(finished, 0.9)[0].consumed.high == 100
  assert summary.final(finished)[0].consumed.high == 200
  (row,) = summary.timed(finished)
  assert row.consumed.median == 300
  assert summary.targets(finished[1:]) == []


def test_schedules_are_kept_apart(make_record):
  final = {"measure": "final", "consumed": 100}
  falling = make_record("after_batch", 4, **final)
  falling["settings"]["arm"]["last_factor"] = 1.0
  finished = [
    falling,
    make_record("after_batch", 4, metric=0.5, **final),
    make_record(schedule_resolution="epoch", metric=0.75, **final),
    make_record(seed=0, metric=0.625, **final),
    make_record(seed=1, metric=0.875, **final),
  ]
  rows = summary.final(finished)
  assert [(row.name, row.runs, row.metric.median) for row in rows] == [
    ("baseline", 2, 0.75),
    ("baseline, rate per epoch", 1, 0.75),
    ("after_batch e=4:1", 1, 0.95),
    ("after_batch e=4", 1, 0.5),
  ]


def test_wall_time_is_compared_with_the_slower_side(make_record):
  # 1.5 of 2 s busy: baseline 800 copies of 1.875 ms, echo 400 of 3.75 ms.
  finished = [
    make_record(consumed=800, upstream_ms=4.0),
    make_record("after_decode", 4, consumed=100, upstream_ms=4.0),
  ]
  baseline, echo = summary.timed(finished)
  assert baseline.ratio == pytest.approx(4 / 1.875)
  assert baseline.expected_seconds == pytest.approx(800 * 4 / 1000)  # upstream
  assert echo.expected_seconds == pytest.approx(100 * 4 * 3.75 / 1000)
  assert echo.expected_speedup == pytest.approx(4 / 3.75)  # R < e
  assert (baseline.speedup, echo.speedup) == (1, 1)


def test_an_echo_on_stall_is_expected_to_fill_the_time_of_a_fresh_example(
  make_record,
):
  # 1.5 of 2 s busy with 800 copies of 1.875 ms: R is 4.
  finished = [make_record("on_stall", consumed=100, upstream_ms=7.5)]
  (row,) = summary.timed(finished)
  assert row.ratio == pytest.approx(4)
  assert row.copies == 8
  assert row.waiting == 0.25
  assert row.expected_seconds == pytest.approx(100 * 7.5 / 1000)
  assert row.expected_speedup == pytest.approx(4)


def test_the_time_until_the_first_batch_counts(make_record):
  run = make_record("after_decode", consumed=100, upstream_ms=4.0)
  run["counts"]["first_wait_seconds"] = 2.0
  (row,) = summary.timed([run])
  assert row.seconds.median == 2.0 + 2.0
  assert row.waiting == (0.5 + 2.0) / (2.0 + 2.0)


def test_a_timed_run_has_consumed_what_it_had_at_the_target(make_record):
  run = make_record(consumed=100, upstream_ms=4.0)
  missed = make_record(consumed=100, upstream_ms=4.0, metric=0.6)
  for one in (run, missed):
    one["counts"]["consumed"] = 130  # and a little later it ended
  (row,) = summary.timed([run])
  assert row.consumed.median == 100
  (row,) = summary.timed([missed])
  assert row.consumed.median == 130


def test_times_are_taken_over_the_seeds_of_an_upstream(make_record):
  slow = {"upstream_ms": 4.0}
  finished = [
    make_record(seed=0, **slow),
    make_record(seed=1, **slow),
    make_record(seed=2, metric=0.6, **slow),
    make_record(seed=0, upstream_jitter=0.5, **slow),
    make_record("on_stall", seed=0, upstream_jitter=0.5, **slow),
  ]
  rows = summary.timed(finished)
  assert [(row.upstream_jitter, str(row.arm)) for row in rows] == [
    (0, "baseline"),
    (0.5, "baseline"),
    (0.5, "on_stall e<=8"),
  ]
  assert (rows[0].runs, rows[0].reached) == (3, 2)
  assert rows[0].seconds == summary.Spread(2.0, 2.0, math.inf)


def test_a_line_tells_how_a_run_went(make_record):
  line = summary.line(make_record("after_batch", 2, consumed=1234))
  assert "after_batch e=2" in line and "0.9 reached after 1,234" in line
  assert "0.9 not reached" in summary.line(make_record(metric=0.6))
