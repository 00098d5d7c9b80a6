"""Which place and factor follow from what was measured."""

import dataclasses

import pytest

from tfecho.advice import choosing
from tfecho.advice.choosing import Choice


def chosen(measured, max_factor=8):
  choice = choosing.recommended(choosing.choices(measured, max_factor))
  return choice.echo_after, choice.factor


class TestChoices:
  def test_every_place_comes_with_every_factor_and_no_echo_first(
    self, slow_storage
  ):
    choices = choosing.choices(slow_storage, 3)
    assert [(x.echo_after, x.factor) for x in choices] == [
      (None, 1),
      *(
        (place, factor)
        for place in ("read", "decode", "augment", "batch")
        for factor in (1.5, 2, 2.5, 3)
      ),
    ]

  def test_each_has_the_time_that_the_model_predicts(self, slow_storage):
    choices = choosing.choices(slow_storage, 2)
    assert choices[0] == Choice(None, 1, 0.04)
    assert [x.step_seconds for x in choices[1:3]] == pytest.approx(
      [0.04 / 1.5, 0.02]
    )

  # largest factor asked for, factors
  @pytest.mark.parametrize(
    ("largest", "factors"),
    [(1.2, [1.2]), (2, [1.5, 2]), (7, [1.5, 2, 2.5, 3, 4, 5, 6, 7])],
  )
  def test_the_largest_factor_is_one_of_them(
    self, slow_storage, largest, factors
  ):
    choices = choosing.choices(slow_storage, largest)
    assert [x.factor for x in choices if x.echo_after == "read"] == factors


class TestRecommended:
  def test_is_the_earliest_place_that_removes_the_bottleneck(
    self, slow_storage
  ):
    assert chosen(slow_storage) == ("read", 4)

  def test_is_a_later_place_where_the_bottleneck_is_later(
    self, heavy_augmentation
  ):
    assert chosen(heavy_augmentation) == ("augment", 4)

  def test_is_no_echo_where_training_waits_for_nothing(self, not_bound):
    assert chosen(not_bound) == (None, 1)

  def test_is_no_echo_where_it_would_gain_less_than_a_tenth(self, measured):
    nearly = measured(
      {"decode": 10.9, "batch": 10.9}, {"decode": 10, "batch": 10}
    )
    assert chosen(nearly) == (None, 1)

  def test_does_what_can_be_done_where_no_factor_suffices(self, slow_storage):
    assert chosen(slow_storage, 2) == ("read", 2)

  def test_takes_the_smallest_factor_that_is_as_fast_as_the_fastest(
    self, measured
  ):
    # 12.8 / 2.5 is 2.4 % above what no factor can undercut, 5.
    place = {"decode": 12.8, "batch": 12.8}
    small = measured(place, {"decode": 5, "batch": 5})
    assert chosen(small) == ("decode", 2.5)


class TestVerdict:
  def test_training_that_waits_is_input_bound(self, slow_storage):
    assert choosing.is_input_bound(slow_storage)
    assert choosing.bottleneck(slow_storage) == "read"

  def test_training_that_does_not_is_its_own_bottleneck(self, not_bound):
    assert not choosing.is_input_bound(not_bound)
    assert choosing.bottleneck(not_bound) == "step"

  def test_reading_does_not_answer_for_its_source(self, slow_storage):
    stages = slow_storage.stages
    measured = dataclasses.replace(
      slow_storage, stages={**stages, "source": stages["read"]}
    )
    assert choosing.bottleneck(measured) == "source"
