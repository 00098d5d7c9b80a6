import detectors
import numpy as np
import pytest

from experiments.workloads.ssd.average_precision import MeanAveragePrecision
from experiments.workloads.ssd.boxes import Level, default_boxes

CLASSES = 3
DEFAULTS = default_boxes(
  64, [Level(4, 16, 16, 28, (2,)), Level(2, 32, 28, 44, (2,))]
)
# Far enough apart that none of them takes another one's default box.
OBJECTS = np.array(
  [
    [[0.0, 0.0, 0.2, 0.3, 1, 0], [0.6, 0.5, 0.9, 1.0, 2, 0]],
    [[0.5, 0.0, 1.0, 0.4, 1, 0], [0.0, 0.0, 0.0, 0.0, 0, 0]],
  ],
  np.float32,
)


def _precision(objects, seen):
  """Returns the metric of a detector that sees `seen` where `objects` are."""
  metric = MeanAveragePrecision(DEFAULTS, classes=CLASSES)
  metric.update_state(objects, detectors.outputs(seen, DEFAULTS, CLASSES))
  return metric.result()


def test_whoever_finds_everything_has_1(capsys):
  assert _precision(OBJECTS, OBJECTS) == pytest.approx(1, abs=1e-9)
  assert capsys.readouterr().out == ""


def test_whoever_finds_nothing_has_0():
  assert _precision(OBJECTS, np.zeros_like(OBJECTS)) == 0


def test_whoever_mistakes_the_classes_has_0():
  mistaken = OBJECTS.copy()
  mistaken[..., 4] = np.where(OBJECTS[..., 4] > 0, 3, 0)
  assert _precision(OBJECTS, mistaken) == 0


def test_it_is_the_mean_over_classes():
  seen = OBJECTS.copy()
  seen[0, 1] = 0  # all of class 2
  assert _precision(OBJECTS, seen) == pytest.approx(1 / 2, abs=1e-9)


def test_it_is_the_precision_up_to_the_recall():
  seen = OBJECTS.copy()
  seen[1] = 0  # one of two of class 1: recalls from 0 to 0.5, of 101 up to 1
  expected = (51 / 101 + 1) / 2
  assert _precision(OBJECTS, seen) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
  # part of the height that is found, thresholds from 0.5 to 0.95 below it
  "part, thresholds",
  [(0.98, 10), (0.72, 5), (0.52, 1), (0.45, 0)],
)
def test_a_box_counts_for_as_many_thresholds_as_it_overlaps(part, thresholds):
  seen = OBJECTS.copy()
  seen[..., 2] = seen[..., 0] + part * (seen[..., 2] - seen[..., 0])
  assert _precision(OBJECTS, seen) == pytest.approx(thresholds / 10, abs=1e-9)


def test_crowds_count_neither_for_nor_against():
  objects = OBJECTS.copy()
  objects[1, 1] = [0.0, 0.6, 0.3, 1.0, 2, 1]
  # Without the crowd, what is seen in it would be wrong.
  seen = OBJECTS.copy()
  seen[1, 1] = [0.0, 0.6, 0.3, 1.0, 2, 0]
  assert _precision(objects, OBJECTS) == pytest.approx(1, abs=1e-9)
  assert _precision(objects, seen) == pytest.approx(1, abs=1e-9)


def test_batches_add_up_and_can_be_forgotten():
  metric = MeanAveragePrecision(DEFAULTS, classes=CLASSES)
  nothing = np.zeros_like(OBJECTS)
  for _ in range(2):
    metric.update_state(
      OBJECTS, detectors.outputs(nothing, DEFAULTS, CLASSES)
    )
    assert metric.result() == 0
    metric.update_state(OBJECTS, detectors.outputs(OBJECTS, DEFAULTS, CLASSES))
    # Half of the objects: of the 101 recalls, those from 0 to 0.5.
    assert metric.result() == pytest.approx(51 / 101, abs=1e-9)
    metric.reset_state()
    assert metric.result() == 0


def test_images_with_nothing_but_crowds_have_no_precision():
  crowds = OBJECTS.copy()
  crowds[..., 5] = crowds[..., 4] > 0
  assert _precision(crowds, OBJECTS) == 0
