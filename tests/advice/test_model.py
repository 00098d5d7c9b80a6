"""The time model against cases that can be worked out by hand."""

import dataclasses

import pytest

from tfecho.advice import model
from tfecho.advice.costs import Cost


def ms(measured, place, factor):
  seconds = model.step_seconds(measured, measured.places[place], factor)
  return pytest.approx(1e3 * seconds)


# place, factor, milliseconds per step
@pytest.mark.parametrize(
  ("place", "factor", "expected"),
  [
    ("read", 1, 40),
    ("read", 2, 20),
    ("read", 2.5, 16),
    ("read", 4, 10),  # R: from here on the training is what takes time
    ("read", 8, 10),
    ("batch", 2, 20),
  ],
)
def test_waiting_is_shared_by_the_copies_and_overlaps_with_training(
  slow_storage, place, factor, expected
):
  assert expected == ms(slow_storage, place, factor)


# place, factor, milliseconds per step on 2 cores
@pytest.mark.parametrize(
  ("place", "factor", "expected"),
  [
    ("decode", 1, 35),
    ("decode", 2, 32.5),  # 10 / 2 + 60 ms on two cores
    ("decode", 10, 30.5),
    ("augment", 2, 17.5),
    ("augment", 8, 10),
  ],
)
def test_computing_shares_the_cores(
  heavy_augmentation, place, factor, expected
):
  assert expected == ms(heavy_augmentation, place, factor)


def test_a_training_on_the_processor_competes_with_its_input(measured):
  both = measured(
    {"decode": 10.0, "batch": 10.0},
    {"decode": 10.0, "batch": 10.0},
    cpu_up={"decode": 20.0, "batch": 20.0},
    cpu_down={"decode": 20.0, "batch": 20.0},
  )
  assert [20, 15, 12.5] == [ms(both, "batch", factor) for factor in (1, 2, 4)]


def test_without_an_echo_it_says_what_was_measured(slow_storage):
  disturbed = dataclasses.replace(slow_storage, baseline=Cost(0.046, 0))
  for place in disturbed.places:
    assert 46 == ms(disturbed, place, 1)


def test_what_a_step_takes_from_upstream_it_takes_at_every_step(slow_storage):
  disturbed = dataclasses.replace(slow_storage, baseline=Cost(0.046, 0))
  assert [26, 16, 11, 10] == [
    ms(disturbed, "read", factor) for factor in (2, 4, 8, 16)
  ]


def test_a_baseline_that_was_faster_than_its_parts_is_believed(slow_storage):
  lucky = dataclasses.replace(slow_storage, baseline=Cost(0.036, 0))
  assert [18, 10] == [ms(lucky, "read", factor) for factor in (2, 8)]


def test_no_echo_is_faster_than_training_on_batches_in_memory(slow_storage):
  lucky = dataclasses.replace(slow_storage, baseline=Cost(0.001, 0))
  for factor in (1, 2, 100):
    assert 10 == ms(lucky, "batch", factor)


def test_the_ratio_is_upstream_over_downstream_time(heavy_augmentation):
  ratios = {
    name: model.ratio(place)
    for name, place in heavy_augmentation.places.items()
  }
  assert ratios == pytest.approx(
    {"decode": 1 / 6, "augment": 3.5, "batch": 3.5}
  )
