import pytest

from experiments import pacing


def test_how_fast_an_arm_trained_leaves_evaluations_out(make_record):
  finished = [
    _timed_run(make_record, "baseline", wait=8.0, seconds=12.0),
    _timed_run(make_record, "after_augment", wait=0.0, seconds=6.0),
  ]
  baseline, echo = pacing.rows(finished)
  # 2 of 10 seconds for 800 copies; the input takes five times as long.
  assert baseline.training_ms == pytest.approx(2.5)
  assert baseline.waiting == pytest.approx(0.8)
  assert baseline.ratio == pytest.approx(5)
  assert (echo.waiting, echo.ratio) == (0, 1)
  assert (baseline.speedup, echo.speedup) == (1, 2)


def test_a_record_that_does_not_tell_evaluations_apart_is_read(make_record):
  (row,) = pacing.rows([make_record()])
  assert row.waiting == 0.25


def test_a_target_that_is_missed_has_no_speed_up(make_record):
  finished = [make_record(), make_record("after_augment", metric=0.6)]
  baseline, echo = pacing.rows(finished)
  assert (baseline.speedup, echo.speedup) == (1, None)
  assert [row.speedup for row in pacing.rows(finished[1:])] == [None]


def _timed_run(make_record, kind, *, wait, seconds):
  """A run that was evaluated for two seconds."""
  run = make_record(kind)
  counts = {"wait_seconds": wait, "evaluation_seconds": 2.0}
  run["counts"].update(counts, seconds=seconds)
  run["curve"]["seconds"] = 3 * [seconds]
  return run
