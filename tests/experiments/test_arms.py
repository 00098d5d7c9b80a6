import pytest

from experiments import arms


def test_every_kind_comes_back_from_its_name():
  for kind in arms.kinds():
    assert arms.parse(kind, 2).kind == kind


@pytest.mark.parametrize(
  "kind, echo_after, shuffle",
  [
    ("after_read", "read", True),
    ("after_decode", "decode", True),
    ("after_augment", "augment", True),
    ("after_batch", "batch", False),
    ("after_decode_unshuffled", "decode", False),
    ("after_batch_shuffled", "batch", True),
  ],
)
def test_a_kind_says_where_the_echo_stands(kind, echo_after, shuffle):
  assert arms.parse(kind, 2.5) == arms.Arm(echo_after, 2.5, shuffle)


def test_what_has_no_factor_to_choose_is_crossed_once():
  kinds = ["baseline", "cached", "after_batch", "on_stall"]
  assert [str(arm) for arm in arms.cross(kinds, [2, 4])] == [
    "baseline",
    "cached",
    "after_batch e=2",
    "after_batch e=4",
    "on_stall e<=8",
  ]


TUNED_AS = {
  "on_stall": "after_decode",
  "after_read": "after_decode",
  "after_read_unshuffled": "after_decode_unshuffled",
  "cached": "baseline",
}


@pytest.mark.parametrize("kind", arms.kinds())
def test_what_trains_on_the_same_examples_is_tuned_as_one(kind):
  assert arms.parse(kind, 2).tuned_as == TUNED_AS.get(kind, kind)


def test_a_falling_factor_is_named_and_has_a_mean():
  arm = arms.parse("after_decode", 4).falling_to(1)
  assert str(arm) == "after_decode e=4:1"
  assert arm.kind == arm.tuned_as == "after_decode"
  # Steps per fresh example, step by step: its mean is what a run has read.
  steps = 1_000
  fresh = sum(1 / (4 - 3 * step / steps) for step in range(steps))
  assert arm.mean_factor == pytest.approx(steps / fresh, rel=1e-3)
  assert arms.parse("after_decode", 4).mean_factor == 4


@pytest.mark.parametrize("last", [4, 5, 0.5, float("nan")])
def test_a_factor_that_does_not_fall_is_refused(last):
  with pytest.raises(ValueError, match=f"must fall, .* got 4:{last:g}"):
    arms.parse("after_decode", 4).falling_to(last)


@pytest.mark.parametrize("kind", ["after_decode_shuffled", "decode", ""])
def test_a_kind_that_is_none_is_refused(kind):
  with pytest.raises(ValueError, match=f"got '{kind}'"):
    arms.parse(kind)


@pytest.mark.parametrize("factor", [0, 0.5, -1, float("inf"), float("nan")])
def test_a_factor_below_one_or_not_finite_is_refused(factor):
  with pytest.raises(ValueError, match=f"got {factor:g}"):
    arms.parse("after_decode", factor)
