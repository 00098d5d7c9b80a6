"""The arithmetic of the suite `stall`, and that its trainings run at all.

How long anything takes is what the suite measures, not what is tested here.
"""

import threading

import numpy as np
import pytest

import tfecho
from experiments.benchmark import stall, stall_stopping, stall_trial
from experiments.benchmark.stall_trial import BATCH_SIZE, Counts, Feed
from experiments.upstream import Upstream

LEVELS = ("example", "batch")


def counts(**changed):
  """100 steps of 15 ms, each with 5 ms of waiting, four copies each, R = 4."""
  fields = {
    "wait_seconds": 0.5,
    "think_seconds": 1.5,
    "requests": 100,
    "consumed": 25 * BATCH_SIZE,
    "emitted": 100 * BATCH_SIZE,
    "read": 25 * BATCH_SIZE,
    "busy_seconds": 25 * 0.060,
  }
  return Counts(**{**fields, **changed})


class TestQuantities:
  def test_waiting_is_a_share_of_the_time(self):
    assert stall_trial.quantities(counts())["waiting"] == 0.25

  def test_the_ratio_is_upstream_over_downstream_per_example(self):
    assert stall_trial.quantities(counts())["R"] == pytest.approx(4)

  def test_copies_are_emitted_per_fresh_example(self):
    assert stall_trial.quantities(counts())["copies"] == 4

  # upstream's seconds for a batch where a step takes 15 ms, copies
  @pytest.mark.parametrize(
    ("seconds", "copies"), [(0.003, 1), (0.015, 1), (0.045, 3), (0.300, 8)]
  )
  def test_the_ideal_is_the_ratio_within_the_limits(self, seconds, copies):
    slow = counts(busy_seconds=25 * seconds)
    ideal = stall_trial.quantities(slow)["ideal copies"]
    assert ideal == pytest.approx(copies)

  def test_a_stretch_too_short_for_anything_fresh_is_no_error(self):
    short = counts(consumed=0, read=0)
    assert stall_trial.quantities(short)["copies"] == short.emitted

  def test_counts_are_those_since_a_moment(self):
    before = Counts(1.0, 2.0, 3, 4, 5, 6, 7.0)
    after = Counts(2.0, 4.0, 6, 8, 10, 12, 14.0)
    assert after.since(before) == before

  def test_results_are_named_by_their_ratio(self):
    results = {0.5: {"waiting": 1}, 4: {"waiting": 2, "copies": 3}}
    assert stall_trial.named_by_ratio(results) == {
      "R = 0.5, waiting": 1,
      "R = 4, waiting": 2,
      "R = 4, copies": 3,
    }

  def test_upstream_is_slower_than_a_step_by_the_ratio(self):
    per_batch = BATCH_SIZE * stall_trial.seconds_per_example(4)
    assert per_batch == pytest.approx(4 * stall_trial.STEP_SECONDS)


class TestBounds:
  @pytest.mark.parametrize("level", LEVELS)
  @pytest.mark.parametrize("how", stall.FLUCTUATIONS)
  def test_fluctuation_is_bounded_up_to_half_of_the_factor(self, level, how):
    what = f"{level} level, {how} upstream"
    [case] = [case for case in stall.cases() if case.what == what]
    bounded = {b.ours for b in case.bounds if b.at_most is not None}
    paces = ["R = 0.9", "R = 1.2", "R = 1.5", "R = 2", "R = 4"]
    assert bounded == {
      "on stall, R = 0.5, copies",
      *(f"on stall, {pace}, waiting" for pace in paces),
      *(f"on stall, {pace}, copies" for pace in paces),
    }

  def test_every_promise_of_the_table_is_held_to_its_bound(self):
    bounded = {
      (case.what, bound.ours): bound.at_most
      for case in stall.cases()
      for bound in case.bounds
      if bound.at_most is not None
    }
    example, batch = (f"{level} level, constant upstream" for level in LEVELS)
    slows = "upstream slows down from R = 0.5 to 4"
    expected = {
      (example, "on stall, R = 8, waiting"): 0.02,
      (batch, "on stall, R = 8, waiting"): 0.02,
      (example, "on stall, R = 4, copies"): 0.10,
      (batch, "on stall, R = 4, copies"): 0.05,
      (example, "on stall, R = 0.9, repeats"): 0.02,
      (batch, "on stall, R = 0.9, repeats"): 0.01,
      (example, "on stall, R = 0.9, doubles"): 0,
      (f"example level, {slows}", "on stall, waiting after"): 0.02,
      (f"batch level, {slows}", "on stall, waiting after"): 0.02,
      ("scalars, buffer of 64", "max_factor=1"): 1.25,
      ("deleted while upstream blocks", "echo_on_stall"): 0.3,
      ("cancelled while upstream blocks", "echo_on_stall"): 0.3,
    }
    assert {name: bounded[name] for name in expected} == expected


@pytest.fixture
def hurried(monkeypatch):
  """Steps of a millisecond: nothing is learned from them but that they run."""
  monkeypatch.setattr(stall_trial, "STEP_SECONDS", 0.001)


@pytest.mark.usefixtures("native_ops", "hurried")
class TestTrainings:
  """The probes, as short as can be: what they return, and not how much."""

  BRIEFLY = {"settle_steps": 1, "settle_fresh": 1, "steps": 8, "fresh": 1}
  NAMES = {"waiting", "R", "copies", "ideal copies", "repeats", "doubles"}

  @pytest.mark.parametrize(
    "make_input",
    [
      stall_trial.pipeline(),
      stall_trial.pipeline("decode", factor=2, echo_buffer=2 * BATCH_SIZE),
      stall_trial.pipeline("decode", max_factor=8),
      stall_trial.pipeline("batch", max_factor=8),
      stall_trial.shuffled(16),
    ],
    ids=["no echo", "fixed", "on stall", "batches", "shuffled"],
  )
  def test_a_feed_is_measured(self, make_input):
    measured = Feed(make_input, {"jitter": 0.5}, **self.BRIEFLY).start(2)()
    assert set(measured) == self.NAMES
    assert 0 <= measured["waiting"] <= 1
    assert measured["copies"] > 0
    assert 0 <= measured["doubles"] <= 1
    assert 0 <= measured["repeats"] <= 1

  def test_without_an_echo_nothing_is_repeated(self):
    measured = Feed(stall_trial.pipeline(), **self.BRIEFLY).start(2)()
    assert (measured["repeats"], measured["doubles"]) == (0, 0)
    assert measured["copies"] == 1

  def test_trainings_side_by_side_are_told_apart(self):
    feed = Feed(stall_trial.pipeline("batch", max_factor=8), **self.BRIEFLY)
    measured = stall_trial.side_by_side(feed.start, (0.5, 2))
    assert set(measured) == {
      f"R = {ratio}, {name}" for ratio in ("0.5", "2") for name in self.NAMES
    }

  def test_a_change_of_pace_is_measured_on_both_sides(self):
    slowed = stall_trial.slowed_down(
      stall_trial.pipeline("batch", max_factor=8), 0.5, 4, steps=8
    )
    assert set(slowed) == {"waiting before", "waiting after"}

  def test_a_fit_is_measured(self):
    measured = stall_trial.fit(2, settle_steps=2, steps=4)
    assert set(measured) == self.NAMES - {"repeats", "doubles"}
    assert measured["copies"] > 0

  @pytest.mark.parametrize("how", stall_stopping.WAYS)
  @pytest.mark.parametrize("name", stall_stopping.TRANSFORMATIONS)
  def test_a_pipeline_can_be_stopped_while_upstream_blocks(self, how, name):
    assert stall_stopping.seconds(how, name) >= 0


class Held(Upstream):
  """Gives the first elements only: as many as the test lets through.

  By their ordinals: several are read at once, and the last to be let through
  must not be taken by one behind it.
  """

  def __init__(self):
    super().__init__()
    self._changed = threading.Condition()
    self._let = 0

  def let(self, n):
    with self._changed:
      self._let += n
      self._changed.notify_all()

  def _serve(self, ordinal):
    with self._changed:
      assert self._changed.wait_for(lambda: ordinal < self._let, timeout=60)
    return super()._serve(ordinal)


@pytest.mark.usefixtures("native_ops")
def test_what_a_shuffle_holds_is_fresh_at_the_start():
  """And what fills the stages behind it, though upstream gives no more."""
  held = 4 * BATCH_SIZE
  upstream = Held()
  batches = iter(stall_trial.shuffled(held)(upstream, tfecho.Stats()))
  upstream.let(held + 6 * BATCH_SIZE)  # the warm-up
  ordinals = [next(batches)[0].numpy() for _ in range(6)]
  assert len(np.unique(ordinals)) == 6 * BATCH_SIZE
  upstream.let(10_000)
