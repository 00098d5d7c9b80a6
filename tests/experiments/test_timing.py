import pytest

from experiments import timing


@pytest.mark.parametrize(
  # R = 5: upstream limits up to e = 5, downstream from there on.
  "factor, seconds",
  [(1, 10), (4, 10), (5, 10), (6, 12), (8, 16)],
)
def test_a_fresh_example_costs_the_time_of_the_slower_side(factor, seconds):
  assert seconds == timing.seconds_per_fresh_example(
    factor, upstream=10, downstream=2
  )


@pytest.mark.parametrize(
  "factor, ratio, speedup",
  [(1, 5, 1), (4, 5, 4), (5, 5, 5), (8, 5, 5), (4, 0.5, 1), (1.5, 2, 1.5)],
)
def test_echo_speeds_up_by_its_factor_as_far_as_upstream_limits(
  factor, ratio, speedup
):
  assert timing.speedup(factor, ratio=ratio) == speedup


@pytest.mark.parametrize("ratio", [0.5, 1, 3, 10])
@pytest.mark.parametrize("factor", [1, 2, 4, 8])
def test_the_speed_up_is_that_of_the_seconds_per_copy(factor, ratio):
  def seconds_per_copy(factor):
    fresh = timing.seconds_per_fresh_example(
      factor, upstream=ratio, downstream=1
    )
    return fresh / factor

  gained = seconds_per_copy(1) / seconds_per_copy(factor)
  assert timing.speedup(factor, ratio=ratio) == pytest.approx(gained)
