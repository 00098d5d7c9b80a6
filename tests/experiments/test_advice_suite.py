"""What the suite `advice` makes of predictions and times. None is taken."""

import itertools

import pytest

from experiments.benchmark import advice, runner
from experiments.benchmark.advice_workloads import WORKLOADS
from tfecho.advice.choosing import Choice

WORKLOAD = WORKLOADS[0]
CHOICES = [
  "no echo",
  *(
    f"{place} e={factor}"
    for place in ("read", "decode", "augment", "batch")
    for factor in (2, 4)
  ),
]


class Trial:
  """Stands for a trial: predictions and times in the order of `CHOICES`."""

  def __init__(self, predicted, measured, recommended):
    self._predicted = dict(zip(CHOICES, predicted))
    self._measured = dict(zip(CHOICES, measured))
    self._measured["recommended"] = recommended

  def predict(self):
    return self._predicted

  def measure(self):
    return self._measured


@pytest.fixture
def rows(monkeypatch):
  """Returns a function that makes the rows of one case and their summary."""

  def make(predicted, measured, recommended):
    trial = Trial(predicted, measured, recommended)
    monkeypatch.setattr(advice, "_Trial", lambda workload: trial)
    case = advice._case(WORKLOAD)
    rows = runner.measure([case], 3)
    return rows + advice.summary(rows)

  return make


def missed(rows):
  return [row.bound.ours for row in rows if not row.ok]


def test_right_predictions_and_the_best_recommendation_pass(rows):
  times = [40, 20, 10, 20, 10, 20, 10, 20, 10]
  assert missed(rows(times, times, 10)) == []


# what is predicted for "read e=2", where it takes 20
@pytest.mark.parametrize(
  ("predicted", "ok"),
  [(25.9, True), (14.1, True), (26.1, False), (13.9, False)],
)
def test_one_prediction_may_be_wrong_by_three_tenths(rows, predicted, ok):
  measured = [40, 20, 10, 20, 10, 20, 10, 20, 10]
  wrong = [40, predicted, *measured[2:]]
  expected = [] if ok else ["predicted, read e=2"]
  assert missed(rows(wrong, measured, 10)) == expected


def test_not_all_of_them_may_be_that_wrong(rows):
  measured = [40, 20, 10, 20, 10, 20, 10, 20, 10]
  assert missed(rows([1.2 * ms for ms in measured], measured, 10)) == [
    "prediction"
  ]


# what the recommended choice takes, where the best that was tried takes 10
@pytest.mark.parametrize(("recommended", "ok"), [(11, True), (11.1, False)])
def test_what_is_recommended_may_be_a_tenth_slower(rows, recommended, ok):
  times = [40, 20, 10, 20, 12, 20, 12, 20, 12]
  result = rows(times, times, recommended)
  assert missed(result) == ([] if ok else ["recommended"])
  best = [row.bound.other for row in result if row.bound.ours == "recommended"]
  assert best == ["measured, read e=4"]


def test_a_summary_of_other_rows_is_empty():
  assert advice.summary([]) == []


def test_every_place_of_a_workload_is_one_of_its_pipeline():
  for workload in WORKLOADS:
    assert {"read", "decode"} & set(workload.stages), workload.what
    pipeline, _ = workload.start()
    for place in workload.places:
      pipeline.dataset(echo_after=place, factor=2, implementation="graph")


def test_workloads_feed_their_steps():
  for workload in WORKLOADS:
    pipeline, step = workload.start()
    batch = next(iter(pipeline.dataset()))
    assert batch.shape[0] == workload.batch_size
    step(batch)


# factor, steps until every element has come as often as it will
@pytest.mark.parametrize(("factor", "group"), [(1, 1), (4, 4), (2.5, 5)])
def test_whole_groups_of_copies_are_timed(factor, group, monkeypatch):
  monkeypatch.setattr(advice, "_WARMUP_SECONDS", 0)
  monkeypatch.setattr(advice, "_MEASURED_SECONDS", 0)
  calls = []
  advice._milliseconds(calls.append, itertools.count(), factor)
  assert len(calls) == 2 * 2 * group


def test_what_was_recommended_last_is_measured(monkeypatch):
  trial = advice._Trial(WORKLOAD)
  trial._recommended = Choice("decode", 2.5, 0.01)
  asked = []

  def measured(place, factor):
    asked.append((place, factor))
    return float(len(asked))

  monkeypatch.setattr(trial, "_milliseconds", measured)
  result = trial.measure()
  assert asked[-1] == ("decode", 2.5)
  assert result["recommended"] == len(asked) == 1 + len(CHOICES)


def test_what_is_in_the_grid_anyway_is_measured_once(monkeypatch):
  trial = advice._Trial(WORKLOAD)
  trial._recommended = Choice("read", 2, 0.01)
  monkeypatch.setattr(
    trial, "_milliseconds", lambda place, factor: (place, factor)
  )
  result = trial.measure()
  assert list(result) == [*CHOICES, "recommended"]
  assert result["recommended"] == ("read", 2)
