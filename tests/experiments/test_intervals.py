import math

import numpy as np
import pytest

from experiments import intervals


def test_the_interval_of_seven_values_leaves_out_the_extremes():
  # The median of seven draws is the smallest value only if four of them are:
  # sum over j >= 4 of C(7, j) (1/7)^j (6/7)^(7-j) = 1.0 %, below 2.5 %; the
  # second or smaller with (2/7) in place of (1/7), 9.9 %, above it.
  assert intervals.of_median([4, 1, 7, 2, 6, 3, 5]) == (2, 6)


def test_of_five_values_the_interval_is_all_of_them():
  # As above: sum over j >= 3 of C(5, j) (1/5)^j (4/5)^(5-j) = 5.8 %.
  assert intervals.of_median([3, 1, 5, 2, 4]) == (1, 5)


def test_less_confidence_makes_a_narrower_interval():
  # 9.9 % and 1.0 % again, beside 2 x 15 % outside of the interval.
  assert intervals.of_median([1, 2, 3, 4, 5, 6, 7], confidence=0.7) == (3, 5)


def test_what_never_came_is_an_upper_bound():
  assert intervals.of_median([3, 1, math.inf, 2, 4]) == (1, math.inf)
  low, high = intervals.of_median([math.inf] * 3)
  assert low == high == math.inf


def test_of_one_value_nothing_is_known():
  for interval in (
    intervals.of_median([3]),
    intervals.of_gain([3, 4], [1]),
    intervals.of_gain([3, math.inf], [1, math.inf]),
  ):
    assert all(map(math.isnan, interval))


def test_the_gain_lies_between_the_extreme_ratios():
  low, high = intervals.of_gain([8, 10, 12], [2, 2.5, 3])
  assert low == pytest.approx(8 / 3, rel=0.15)
  assert high == pytest.approx(12 / 2, rel=0.15)
  assert low < 10 / 2.5 < high


def test_a_gain_over_misses_has_no_upper_end_and_of_misses_no_lower_one():
  assert intervals.of_gain([8, 8, math.inf], [2, 2, 2]) == (4, math.inf)
  assert intervals.of_gain([8, 8, 8], [2, 2, math.inf]) == (0, 4)


def test_an_interval_holds_the_median_as_often_as_it_says():
  # 200 samples of nine: with 95 % the count's deviation is 3; four of them.
  # The percentile interval of a median is known to be a little too wide.
  random = np.random.default_rng(0)
  held = 0
  for values in random.normal(size=(200, 9)):
    low, high = intervals.of_median(values)
    held += low <= 0 <= high
  assert held >= 190 - 12


def test_the_same_values_give_the_same_interval():
  values = list(np.random.default_rng(1).normal(size=8))
  assert intervals.of_median(values) == intervals.of_median(values)
