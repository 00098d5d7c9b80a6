import detectors
import numpy as np
import pytest

from experiments.workloads.ssd.boxes import SSD300, Level, default_boxes
from experiments.workloads.ssd.matching import match

DEFAULTS = default_boxes(
  64, [Level(4, 16, 16, 28, (2,)), Level(2, 32, 28, 44, (2,))]
)


def _reference(objects, defaults):
  """Goes through default boxes and objects one by one."""
  objects = [row for row in objects if row[4] > 0 and not row[5]]
  overlap = np.array(
    [[detectors.overlap(row[:4], box) for box in defaults] for row in objects]
  ).reshape(len(objects), len(defaults))
  owners = {}
  for box in range(len(defaults)):
    if len(objects) and overlap[:, box].max() > 0.5:
      owners[box] = overlap[:, box].argmax()
  wishes = [row.argmax() for row in overlap]
  # The best last, so that it takes the box from the others.
  for index in sorted(range(len(objects)), key=lambda i: overlap[i].max()):
    owners[wishes[index]] = index
  return {box: objects[index] for box, index in owners.items()}


@pytest.mark.parametrize("seed", range(5))
def test_default_boxes_stand_for_what_a_plain_search_says(seed):
  rng = np.random.RandomState(seed)
  batch = [detectors.random_objects(rng, 6, classes=3) for _ in range(3)]
  boxes, classes = match(np.stack(batch), DEFAULTS)
  for n, objects in enumerate(batch):
    expected = _reference(objects, DEFAULTS)
    assert set(np.flatnonzero(classes[n])) == set(expected)
    for box, row in expected.items():
      np.testing.assert_array_equal(boxes[n, box], row[:4])
      assert classes[n, box] == row[4]


def _match_one(*rows, defaults=DEFAULTS):
  boxes, classes = match(np.array([rows], np.float32), defaults)
  return boxes[0].numpy(), classes[0].numpy()


def test_every_object_has_a_default_box_however_small_it_is():
  _, classes = _match_one([0.501, 0.501, 0.502, 0.502, 7, 0])
  assert np.count_nonzero(classes == 7) == 1


def test_where_two_want_the_same_box_the_better_one_gets_it():
  box = DEFAULTS[20]
  worse = np.append(box + [0, 0, 0.01, 0.01], [1, 0])
  for rows in [[*box, 2, 0], worse], [worse, [*box, 2, 0]]:
    _, classes = _match_one(*rows)
    assert classes[20] == 2


@pytest.mark.parametrize(
  "row", [(0, 0, 0, 0, 0, 0), (0, 0, 1, 1, 4, 1)], ids=["empty", "crowd"]
)
def test_nothing_stands_for_an_empty_row_or_a_crowd(row):
  _, classes = _match_one(row)
  assert not classes.any()


def test_all_of_ssd300_can_be_matched():
  rng = np.random.RandomState(0)
  objects = detectors.random_objects(rng, 100, classes=80)
  _, classes = _match_one(*objects, defaults=default_boxes(300, SSD300))
  assert 50 < np.count_nonzero(classes) < 8_732 // 2
