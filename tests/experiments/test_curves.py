import pytest

from experiments.curves import reached


@pytest.mark.parametrize(
  "values, target, index",
  [
    ([], 0.9, None),
    ([1.0, 1.0], 0.9, None),  # two evaluations have no mean of three
    ([1.0, 1.0, 1.0], 0.9, 2),
    ([0.99, 0.99, 0.99], 0.99, 2),  # equal counts, whatever the rounding
    ([0.97, 0.99, 0.98, 0.99, 1.0], 0.99, 4),
    ([0.0, 1.0, 0.0, 1.0, 0.0], 0.9, None),  # a lucky one does not count
    ([0.9, 0.9, 0.9, 0.1, 0.1], 0.9, 2),  # what comes later changes nothing
  ],
)
def test_a_target_is_reached_by_the_mean_of_three(values, target, index):
  assert reached(values, target) == index


def test_a_metric_to_be_minimized_is_reached_from_above():
  assert reached([5.0, 4.0, 4.0, 3.5], 3.9, maximize=False) == 3
