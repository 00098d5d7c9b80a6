import numpy as np
import pytest

from experiments.counting import FreshCounter


def _counted(*batches):
  counter = FreshCounter()
  for batch in batches:
    counter.update(np.array(batch))
  return counter


def test_without_copies_all_counts_agree():
  counter = _counted([0, 1, 2], [3, 4, 5])
  assert counter.emitted == counter.consumed == counter.trained == 6
  assert counter.distinct_share == 1
  assert counter.repeat_distance is None


def test_copies_count_as_emitted_only():
  counter = _counted([0, 0, 1], [1, 2, 2])
  assert (counter.emitted, counter.consumed, counter.trained) == (6, 3, 3)
  assert counter.distinct_share == pytest.approx(2 / 3)
  assert counter.repeat_distance == 1


def test_examples_that_a_buffer_holds_back_are_consumed_but_not_trained():
  counter = _counted([7, 0, 7])
  assert (counter.consumed, counter.trained) == (8, 2)
  assert counter.repeat_distance == 2


def test_distances_go_from_one_copy_to_the_next_across_batches():
  # Example 0 at positions 0, 4 and 5; example 1 at 1 and 3.
  counter = _counted([0, 1], [2, 1], [0, 0])
  assert counter.repeat_distance == pytest.approx((4 + 1 + 2) / 3)


def test_ordinals_may_grow_without_bound():
  counter = _counted([0], [1_000_000], [1_000_000])
  assert (counter.consumed, counter.trained) == (1_000_001, 2)
