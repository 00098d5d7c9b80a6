"""Medians of costs, and the order that they are known to have."""

import statistics

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tfecho.advice.costs import Cost, ascending, median

TIMES = st.floats(0.001, 1000)


def costs(values):
  return [Cost(value, value) for value in values]


def seconds(costs):
  return [cost.seconds for cost in costs]


def test_the_median_takes_each_time_by_itself():
  assert median([Cost(1, 9), Cost(2, 8), Cost(7, 7)]) == Cost(2, 8)


# seconds, CPU seconds, whether that is waiting
@pytest.mark.parametrize(
  ("wall", "cpu", "waits"),
  [(1.0, 0.0, True), (1.0, 0.49, True), (1.0, 0.5, False), (1.0, 2.0, False)],
)
def test_who_uses_less_than_half_a_core_waits(wall, cpu, waits):
  assert Cost(wall, cpu).waits is waits


# as measured, as near as an ascending sequence comes to it
@pytest.mark.parametrize(
  ("measured", "expected"),
  [
    ([1, 2, 3], [1, 2, 3]),
    ([], []),
    ([1, 4, 2], [1, 3, 3]),
    ([3, 2, 1], [2, 2, 2]),
    ([2, 1, 5, 3], [1.5, 1.5, 4, 4]),
    ([1, 5, 3, 1], [1, 3, 3, 3]),
  ],
)
def test_neighbours_in_the_wrong_order_are_averaged(measured, expected):
  assert seconds(ascending(costs(measured))) == expected


@hypothesis.given(st.lists(TIMES, min_size=1, max_size=8))
def test_ascending_costs_ascend_and_keep_the_mean(values):
  result = seconds(ascending(costs(values)))
  assert result == sorted(result)
  assert statistics.mean(result) == pytest.approx(statistics.mean(values))


@hypothesis.given(
  st.lists(TIMES, min_size=2, max_size=5), st.lists(TIMES, min_size=5)
)
def test_no_ascending_sequence_is_nearer(values, other):
  other = np.sort(other[: len(values)])
  result = np.array(seconds(ascending(costs(values))))
  distance = np.sum((result - values) ** 2)
  assert distance <= np.sum((other - values) ** 2) * (1 + 1e-9) + 1e-9


def test_both_times_are_put_in_order_each_by_itself():
  result = ascending([Cost(1, 4), Cost(2, 2)])
  assert result == [Cost(1, 3), Cost(2, 3)]
