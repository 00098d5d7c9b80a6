"""What `advise` concludes, and how it shows it."""

import dataclasses
import functools
import json
import re

import keras
import pytest
import tensorflow as tf

import tfecho
from tfecho.advice import advising
from tfecho.advice.advising import conclude
from tfecho.advice.costs import Cost


def advice(measured, *, max_factor=8, memory_bytes=None):
  return conclude(measured, max_factor=max_factor, memory_bytes=memory_bytes)


@pytest.fixture
def pipeline():
  return tfecho.Pipeline(
    tf.data.Dataset.range(64), decode=tf.square, batch_size=4
  )


class TestAdvice:
  def test_says_what_to_pass_to_the_pipeline(self, slow_storage):
    result = advice(slow_storage)
    assert result.echo == {"echo_after": "read", "factor": 4}
    assert result.speedup == pytest.approx(4)

  def test_without_an_echo_there_is_nothing_to_pass(self, not_bound):
    result = advice(not_bound)
    assert result.echo == {}
    assert result.speedup == 1
    assert not result.input_bound

  def test_has_the_ratio_of_every_place(self, heavy_augmentation):
    assert advice(heavy_augmentation).ratios == pytest.approx(
      {"decode": 1 / 6, "augment": 3.5, "batch": 3.5}
    )

  def test_is_a_dict_that_json_can_hold(self, slow_storage):
    record = json.loads(json.dumps(advice(slow_storage).to_dict()))
    assert record["recommended"] == {
      "echo_after": "read", "factor": 4, "step_seconds": 0.010,
    }
    assert record["input_bound"] is True
    assert record["bottleneck"] == "read"
    assert record["ratios"]["batch"] == pytest.approx(4)
    assert record["measured"]["stages"]["read"]["seconds"] == 0.04
    assert record["measured"]["cores"] == 2
    assert len(record["choices"]) == 1 + 4 * 8


class TestTable:
  def test_shows_every_stage_place_and_choice(self, slow_storage):
    lines = [line.split() for line in str(advice(slow_storage)).splitlines()]
    assert ["read", "40", "0"] in lines
    assert ["train", "step", "10", "0"] in lines
    assert ["2", "20", "20", "20", "20"] in lines
    assert ["R", "4", "4", "4", "4"] in lines

  def test_says_what_is_recommended_and_why(self, slow_storage):
    text = str(advice(slow_storage))
    assert text.startswith(
      "Input-bound: 40 ms a step, 10 on batches in memory. The bottleneck is"
      " read, which waits."
    )
    assert (
      'Recommended: echo_after="read", factor=4: 10 ms a step, 4 times as fast;'
      "\nthe earliest place and smallest factor that remove the bottleneck."
    ) in text

  def test_says_how_many_more_steps_the_echo_may_take(self, slow_storage):
    assert (
      "worth it if training takes fewer than 4 times as many steps as without"
    ) in str(advice(slow_storage))

  def test_says_what_is_left_where_no_factor_suffices(self, slow_storage):
    text = str(advice(slow_storage, max_factor=2))
    assert "the input still takes 2 times as long as the training" in text

  def test_says_plainly_not_to_echo(self, not_bound):
    text = str(advice(not_bound))
    assert text.startswith("Not input-bound: 50 ms a step")
    assert "Don't echo." in text
    assert "Simpler" not in text
    assert "With this echo" not in text

  def test_puts_what_repeats_nothing_first_where_it_is_as_fast(
    self, slow_storage
  ):
    finite = dataclasses.replace(slow_storage, examples=100)
    best = advice(finite, memory_bytes=10**6)
    assert best.simpler_is_as_fast
    text = str(best)
    first, _, second = text.partition("Where that can't be done: echo_after=")
    assert "as fast as an echo and repeats no example:\n- all 100" in first
    assert second.startswith('"read", factor=4')

  def test_lists_simpler_remedies_with_their_times(self, slow_storage):
    threads = dataclasses.replace(
      slow_storage, more_threads=Cost(0.011, 0), num_threads=16
    )
    text = str(advice(threads))
    simpler = text.partition("Simpler, without a repeated example:\n")[2]
    assert simpler.splitlines()[0].endswith(": 11 ms a step.")

  def test_writes_large_numbers_out(self, measured):
    places = ("read", "decode", "augment", "batch")
    slow = measured(
      dict.fromkeys(places, 1_250_000.0), dict.fromkeys(places, 10_000.0)
    )
    threads = dataclasses.replace(
      slow, more_threads=Cost(11, 0), num_threads=16
    )
    text = str(advice(threads, max_factor=2))
    lines = [line.split() for line in text.splitlines()]
    assert ["train", "step", "10,000", "0"] in lines
    assert ["R", "125", "125", "125", "125"] in lines
    assert not re.search(r"\de[+-]\d", text)

  def test_has_no_line_too_many_where_nothing_is_simpler(self, slow_storage):
    text = str(advice(slow_storage))
    assert "\n\n\n" not in text
    assert text == text.strip()


class TestTrainStep:
  # a function, what it is called with for a batch that is a pair
  @pytest.mark.parametrize(
    ("function", "expected"),
    [
      (lambda x, y: (x, y), (1, 2)),
      (lambda x, y, weight=None: (x, y), (1, 2)),
      (lambda *batch: batch, (1, 2)),
      (lambda batch: batch, (1, 2)),
    ],
  )
  def test_gets_a_pair_unpacked_unless_it_takes_one_argument(
    self, function, expected
  ):
    calls = []
    traced = wrapped(function, calls)
    advising._step(traced, None)((1, 2))
    assert calls == [expected]

  def test_gets_anything_else_in_one_piece(self):
    calls = []
    step = advising._step(calls.append, None)
    for batch in (1, {"x": 1}, [1, 2]):
      step(batch)
    assert calls == [1, {"x": 1}, [1, 2]]


def wrapped(function, calls):
  """`function` with its signature, noting what it returns."""
  @functools.wraps(function)
  def call(*arguments):
    calls.append(function(*arguments))

  return call


class TestArguments:
  # arguments, what the error names
  @pytest.mark.parametrize(
    ("arguments", "named"),
    [
      ({}, "`train_step` and `step_seconds`"),
      ({"train_step": print, "step_seconds": 1.0}, "`train_step` and"),
      ({"train_step": 3}, "`train_step`.*3"),
      ({"step_seconds": 0}, "`step_seconds`.*0"),
      ({"step_seconds": -1.0}, "`step_seconds`.*-1.0"),
      ({"step_seconds": "1"}, "`step_seconds`.*'1'"),
      ({"step_seconds": float("nan")}, "`step_seconds`.*nan"),
      ({"step_seconds": 1.0, "max_factor": 1}, "`max_factor`.*1"),
      ({"step_seconds": 1.0, "max_factor": True}, "`max_factor`.*True"),
      ({"step_seconds": 1.0, "seconds": 0}, "`seconds`.*0"),
      ({"step_seconds": 1.0, "memory_bytes": -1}, "`memory_bytes`.*-1"),
      ({"step_seconds": 1.0, "on_progress": 1}, "`on_progress`.*1"),
    ],
  )
  def test_bad_ones_are_refused_before_anything_runs(
    self, pipeline, arguments, named
  ):
    with pytest.raises(ValueError, match=named):
      tfecho.advise(pipeline, **arguments)

  def test_a_model_itself_is_no_training_step(self, pipeline):
    model = keras.Sequential([keras.layers.Dense(1)])
    with pytest.raises(ValueError, match="`train_step` .*train_on_batch"):
      tfecho.advise(pipeline, train_step=model)

  def test_only_pipelines_can_be_measured(self):
    with pytest.raises(ValueError, match="`pipeline`.*RangeDataset"):
      tfecho.advise(tf.data.Dataset.range(3), step_seconds=1.0)
