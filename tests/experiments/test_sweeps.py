import logging

from experiments import comparisons, sweeps
from experiments.sweeps import BUFFERS, Sweep


def test_a_sweep_is_sorted_and_differs_in_one_condition(make_record):
  finished = [
    make_record(batch_size=size, echo_buffer=buffer)
    for size in (32, 8)
    for buffer in (64, 128)
  ]
  found = comparisons.split(finished, "target")
  swept = Sweep("batch_size").of(found)
  assert [
    [(c.conditions["batch_size"], c.conditions["echo_buffer"]) for c in sweep]
    for sweep in swept
  ] == [[(8, 64), (32, 64)], [(8, 128), (32, 128)]]


def test_what_follows_the_swept_setting_may_differ_with_it(make_record):
  finished = [
    make_record(batch_size=8, max_steps=100),
    make_record(batch_size=32, max_steps=25),
  ]
  found = comparisons.split(finished, "target")
  alone = [[one] for one in found]
  assert Sweep("batch_size").of(found) == alone
  (sweep,) = Sweep("batch_size", ("max_steps",)).of(found)
  assert sweep == found


def test_two_candidates_for_one_value_are_told_and_make_no_sweep(
  make_record, caplog
):
  finished = [
    make_record(batch_size=8, max_steps=100),
    make_record(batch_size=8, max_steps=50),
    make_record(batch_size=32, max_steps=25),
  ]
  found = comparisons.split(finished, "target")
  with caplog.at_level(logging.WARNING):
    swept = Sweep("batch_size", ("max_steps",)).of(found)
  assert swept == [[one] for one in found]
  assert "no sweep over batch_size" in caplog.text
  assert "max_steps" in caplog.text


def test_a_baseline_counts_once_however_often_it_was_run(make_record):
  finished = [
    make_record(seed=seed, echo_buffer=buffer, consumed=buffer + seed)
    for buffer in (64, 128)
    for seed in (0, 1)
  ]
  (sweep,) = BUFFERS.of(comparisons.split(finished, "target"))
  assert sweeps.baseline(sweep) == finished[:2]


def test_a_buffer_of_none_is_that_of_the_arm_without_a_shuffle(make_record):
  finished = [
    make_record(kind, 4, echo_buffer=buffer)
    for buffer, kind in [
      (64, "baseline"),
      (64, "cached"),
      (64, "after_decode"),
      (64, "after_decode_unshuffled"),
      (128, "after_decode"),
    ]
  ]
  (sweep,) = BUFFERS.of(comparisons.split(finished, "target"))
  ((arm, line),) = sweeps.by_buffer(sweep).items()
  assert str(arm) == "after_decode e=4"
  assert line == {0: [finished[3]], 64: [finished[2]], 128: [finished[4]]}
