"""Durations are read exactly, and converted as documented."""

import math
from fractions import Fraction

import hypothesis
import hypothesis.strategies as st
import pytest
import tensorflow as tf

import tfecho
from tfecho.training import Duration, Timeline

KNOWN = {"batch_size": 128, "fresh_examples": 50_000}


# --- Reading ----------------------------------------------------------------


@pytest.mark.parametrize(
  "text, value, unit",
  [
    ("5ep", 5, "ep"),
    ("100ba", 100, "ba"),
    ("50_000sp", 50_000, "sp"),
    ("1_234_567sp", 1_234_567, "sp"),
    ("0.1dur", Fraction(1, 10), "dur"),
    ("1dur", 1, "dur"),
    ("1.5ep", Fraction(3, 2), "ep"),
    ("2.ep", 2, "ep"),
    (".5ep", Fraction(1, 2), "ep"),
    ("1e3ba", 1_000, "ba"),
    ("1.5e3ba", 1_500, "ba"),
    ("2E+2ba", 200, "ba"),
    ("5e-2dur", Fraction(1, 20), "dur"),
    ("1e-300ep", Fraction(1, 10**300), "ep"),
    (" 5ep ", 5, "ep"),
    ("0ep", 0, "ep"),
    (0, 0, "ba"),
  ],
)
def test_a_duration_is_read_exactly(text, value, unit):
  assert Duration.parse(text) == Duration(Fraction(value), unit)


@pytest.mark.parametrize(
  "text",
  ["5", "ep", "", "5 ep", "5epochs", "5s", "5EP", "1,000ba", "5__0ba", "_5ba"]
  + ["nanep", "infep", "1e9999ep", "0x10ba", "5ep5", "1/2ep", "--5ep", "1e3"]
  + [5, 5.0, 0.0, False, True, None, b"5ep", ["5ep"]],
)
def test_what_is_no_duration_is_refused_with_what_was_given(text):
  with pytest.raises(ValueError) as error:
    Duration.parse(text, argument="warmup")
  assert "`warmup` must be a number and a unit" in str(error.value)
  assert f"got {text!r};" in str(error.value)
  assert '"sp" (fresh examples)' in str(error.value)


@pytest.mark.parametrize(
  "text, message",
  [
    ("-5ep", "must not be negative"),
    ("-0.1dur", "must not be negative"),
    ("1.5ba", "must be a whole number of batches"),
    ("1e-1ba", "must be a whole number of batches"),
    ("0.5sp", "must be a whole number of fresh examples"),
    ("1.1dur", 'must be at most the whole training, "1dur"'),
  ],
)
def test_an_impossible_number_is_refused_with_what_was_given(text, message):
  with pytest.raises(ValueError) as error:
    Duration.parse(text, argument="total")
  assert str(error.value) == f"`total` {message}, got {text!r}"


@pytest.mark.parametrize("text", ["5ep", "100ba", "0.1dur", "1.5ep", "0sp"])
def test_a_duration_prints_as_it_is_written(text):
  assert str(Duration.parse(text)) == text
  assert Duration.parse(Duration.parse(text)) == Duration.parse(text)


# --- Epochs are passes over fresh data --------------------------------------


@pytest.mark.parametrize(
  "factor, steps_per_epoch",
  # 50,000 fresh examples in batches of 128: 390.625.
  [(1, 391), (2, 782), (4, 1_563), (2.5, 977), (1.1, 430), (2.3, 899)],
)
def test_an_epoch_is_a_pass_over_the_fresh_data(factor, steps_per_epoch):
  timeline = Timeline(factor=factor, **KNOWN)
  assert timeline.steps_per_epoch == steps_per_epoch
  assert timeline.steps("1ep") == steps_per_epoch
  assert timeline.steps("3ep") == 3 * steps_per_epoch
  assert timeline.steps("50_000sp") == steps_per_epoch


@pytest.mark.parametrize("place", ["decode", "augment", "batch"])
@pytest.mark.parametrize("factor", [1, 2, 2.5, 7 / 3])
@pytest.mark.parametrize("drop_remainder", [False, True])
def test_an_epoch_is_as_long_as_that_of_the_pipeline(
  place, factor, drop_remainder
):
  pipeline = tfecho.Pipeline(
    tf.data.Dataset.range(50), batch_size=8, drop_remainder=drop_remainder
  )
  echo = {"echo_after": place, "factor": factor}
  steps = pipeline.steps_per_epoch(**echo)
  timeline = Timeline(fresh_examples=50, factor=factor, steps_per_epoch=steps)
  dataset = pipeline.dataset(**echo, implementation="graph")
  assert timeline.steps("1ep") == sum(1 for _ in dataset)


def test_without_arguments_an_epoch_is_as_long_as_that_of_the_pipeline():
  pipeline = tfecho.Pipeline(tf.data.Dataset.range(50), batch_size=8)
  for factor in (1, 2, 2.5, 7 / 3):
    timeline = Timeline(batch_size=8, fresh_examples=50, factor=factor)
    expected = pipeline.steps_per_epoch(echo_after="decode", factor=factor)
    assert timeline.steps_per_epoch == expected


def test_fresh_examples_of_an_endless_source_are_batches_times_factor():
  timeline = Timeline(batch_size=100, factor=4)
  assert timeline.steps("1_000sp") == 40
  assert timeline.steps_per_epoch is None


def test_part_of_a_training_is_part_of_its_steps():
  timeline = Timeline(total="90ep", factor=2, **KNOWN)
  assert timeline.total_steps == 90 * 782
  assert timeline.steps("0.1dur") == 9 * 782
  assert timeline.steps("1dur") == 90 * 782
  assert Timeline(total="1_000ba").steps("0.25dur") == 250


def test_batches_need_nothing_to_be_known():
  assert Timeline().steps("1e3ba") == 1_000
  assert Timeline(factor=None).steps("1e3ba") == 1_000
  assert Timeline().steps(0) == 0


# --- Rounding ---------------------------------------------------------------


@pytest.mark.parametrize(
  "duration, steps",
  [
    ("0.14ep", 1),  # 1.4
    ("0.15ep", 2),  # 1.5: halves go up
    ("0.25ep", 3),  # 2.5: also to odd numbers
    ("0.01ep", 1),  # 0.1: never to zero
    ("1e-300ep", 1),
    ("0ep", 0),  # unless zero was asked for
    ("0sp", 0),
    ("0dur", 0),
  ],
)
def test_the_nearest_step_counts(duration, steps):
  assert Timeline(steps_per_epoch=10).steps(duration) == steps


@pytest.mark.parametrize(
  "scale, steps", [(1, 5), (2, 10), (0.5, 3), (0.7, 4), (0.1, 1), (1e-9, 1)]
)
def test_a_scale_multiplies_before_rounding(scale, steps):
  assert Timeline().steps("5ba", scale=scale) == steps


@hypothesis.given(
  hundredths=st.integers(0, 10**6),
  steps_per_epoch=st.integers(1, 10**4),
)
def test_rounding_is_off_by_no_more_than_a_half(hundredths, steps_per_epoch):
  steps = Timeline(steps_per_epoch=steps_per_epoch).steps(
    f"{hundredths / 100}ep"
  )
  exact = Fraction(hundredths * steps_per_epoch, 100)
  assert steps == (max(1, math.floor(exact + Fraction(1, 2))) if exact else 0)


# --- What is not known in advance -------------------------------------------


@pytest.mark.parametrize(
  "factor", [None, pytest.param("variable", id="variable")]
)
@pytest.mark.parametrize("duration", ["5ep", "1_000sp", "0.1dur"])
def test_the_first_value_of_a_variable_is_never_taken_for_its_mean(
  factor, duration
):
  if factor == "variable":
    factor = tfecho.factor_variable(4)
  timeline = Timeline(factor=factor, total="10ep", **KNOWN)
  with pytest.raises(ValueError) as error:
    timeline.steps(duration, argument="warmup")
  assert "the factor is not known in advance" in str(error.value)
  assert "`steps_per_epoch`, or the mean of the factor" in str(error.value)
  assert timeline.steps_per_epoch is None


def test_a_declared_mean_factor_is_enough():
  timeline = Timeline(factor=2.5, total="10ep", **KNOWN)
  assert timeline.steps("1ep") == 977
  assert timeline.steps("1_000sp") == 20
  assert timeline.steps("0.1dur") == 977


def test_declared_steps_per_epoch_are_enough():
  timeline = Timeline(
    factor=tfecho.factor_variable(4),
    fresh_examples=50_000,
    steps_per_epoch=1_000,
    total="10ep",
  )
  assert timeline.steps("5ep") == 5_000
  assert timeline.steps("500sp") == 10
  assert timeline.steps("0.1dur") == 1_000


def test_declared_steps_of_the_training_are_enough_for_parts_of_it():
  timeline = Timeline(factor=None, total="10_000ba")
  assert timeline.steps("0.1dur") == 1_000


@pytest.mark.parametrize(
  "known, duration, missing",
  [
    ({}, "5ep", "`batch_size` and `fresh_examples`, or `steps_per_epoch`"),
    ({"batch_size": 8}, "5ep", "`batch_size` and `fresh_examples`, or"),
    ({}, "100sp", "give `batch_size`"),
    ({"steps_per_epoch": 8}, "100sp", "give `fresh_examples`"),
    ({}, "0.1dur", "give the `total` of the training"),
    (KNOWN, "0.1dur", "give the `total` of the training"),
  ],
)
def test_an_error_says_what_is_missing(known, duration, missing):
  with pytest.raises(ValueError) as error:
    Timeline(**known).steps(duration, argument="warmup")
  assert f"`warmup`='{duration}' can't be converted" in str(error.value)
  assert missing in str(error.value)


@pytest.mark.parametrize(
  "arguments, message",
  [
    ({"batch_size": 0}, "`batch_size` must be an int of at least 1, got 0"),
    ({"fresh_examples": 1.5}, "`fresh_examples` must be an int of at least 1"),
    ({"steps_per_epoch": True}, "`steps_per_epoch` must be an int of at least"),
    ({"factor": 0.5}, "`factor` must be finite and at least 1, got 0.5"),
    ({"total": "10"}, "`total` must be a number and a unit"),
    ({"total": "0.5dur"}, "`total` can't be a part of itself, got '0.5dur'"),
  ],
)
def test_a_bad_argument_is_named(arguments, message):
  with pytest.raises(ValueError, match="^`") as error:
    Timeline(**arguments)
  assert message in str(error.value)


def test_a_timeline_shows_what_it_knows():
  assert repr(Timeline(batch_size=8, factor=2.5, total="3ep")) == (
    "Timeline(batch_size=8, fresh_examples=None, factor=2.5,"
    " steps_per_epoch=None, total='3ep')"
  )


def test_more_steps_than_an_optimizer_can_count_are_refused():
  timeline = Timeline(steps_per_epoch=10**6)
  assert timeline.steps("2_147ep") == 2_147_000_000
  with pytest.raises(ValueError, match="must be less than 2\\*\\*31 steps"):
    timeline.steps("2_148ep")


# --- Around a training ------------------------------------------------------


def test_a_timeline_is_given_a_length_later():
  timeline = Timeline(**KNOWN, factor=2)
  assert timeline.lasting("10ep").steps("0.5dur") == timeline.steps("5ep")
  assert timeline.total_steps is None  # It is another one.
  with pytest.raises(ValueError, match="`total` can't be a part of itself"):
    timeline.lasting("1dur")


def test_a_timeline_says_what_it_can_convert():
  nothing, epochs = Timeline(), Timeline(steps_per_epoch=10)
  assert [d for d in ("1ep", "1ba", "1sp") if nothing.can_convert(d)] == ["1ba"]
  assert epochs.can_convert("1ep") and not epochs.can_convert("1sp")
  assert epochs.lasting("2ep").can_convert("1dur")


@pytest.mark.parametrize(
  "known, steps, fresh",
  [
    ({"batch_size": 32}, 10, 320),
    ({"batch_size": 32, "factor": 2.5}, 10, 128),
    (KNOWN, 391, 50_000),  # an epoch, whose last batch is not full
    ({"steps_per_epoch": 10}, 5, None),
    ({"batch_size": 32, "factor": None}, 5, None),
  ],
)
def test_steps_take_fresh_examples(known, steps, fresh):
  assert Timeline(**known).fresh_examples(steps) == fresh
