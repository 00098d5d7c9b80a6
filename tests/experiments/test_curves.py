import math

import pytest

from experiments.curves import best, reached


def _where(metric, target, *, maximize=True, column="consumed"):
  """At how many fresh examples, 100 from one evaluation to the next."""
  at = {"consumed": [100 * (i + 1) for i in range(len(metric))]}
  run = {
    "metric": {"maximize": maximize},
    "curve": {**at, "metric": metric},
  }
  there = reached(run, target)
  return None if there is None else there[column]


@pytest.mark.parametrize(
  "metric, target, consumed",
  [
    ([], 0.9, None),
    ([1.0, 1.0], 0.9, None),  # two evaluations have no mean of three
    ([1.0, 1.0, 1.0], 0.9, 200),  # in the middle
    ([0.99, 0.99, 0.99], 0.99, 200),  # equal counts, whatever the rounding
    ([0.0, 0.0, 0.0, 3.0], 1.0, 300),
    ([0.0, 0.0, 0.0, 3.0], 0.25, 225),  # between two means, in proportion
    ([0.0, 0.3, 0.6, 0.9], 0.45, 250),
    ([0.0, 1.0, 0.0, 1.0, 0.0], 0.9, None),  # a lucky one does not count
    ([0.9, 0.9, 0.9, 0.1, 0.1], 0.9, 200),  # what comes later changes nothing
  ],
)
def test_a_target_is_reached_by_the_mean_of_three(metric, target, consumed):
  there = _where(metric, target)
  assert there == (consumed and pytest.approx(consumed))


def test_a_metric_to_be_minimized_is_reached_from_above():
  metric = [5.0, 4.0, 3.0, 2.0]
  assert _where(metric, 3.5, maximize=False) == pytest.approx(250)
  assert _where(metric, 3.5, maximize=False, column="metric") == 3.5


def test_how_often_is_evaluated_changes_nothing_where_a_metric_rises_evenly():
  often = [i / 100 for i in range(1, 101)]
  seldom = [often[i] for i in range(9, 100, 10)]
  assert 10 * _where(seldom, 0.555) == pytest.approx(_where(often, 0.555))


def test_behind_a_mean_that_is_infinitely_bad_is_nothing_to_share():
  metric = [math.inf, 4.0, 4.0, 4.0]
  assert _where(metric, 5.0, maximize=False) == 300


def test_the_best_is_that_of_a_mean_too():
  assert best([0.96, 0.98, 0.97, 0.99]) == pytest.approx(0.98)
  assert best([4.0, 2.0, 3.0, 4.0], maximize=False) == 3
  assert best([1.0, 1.0]) is None
