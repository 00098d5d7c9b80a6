import detectors
import numpy as np
import pytest

from experiments.workloads.ssd.boxes import Level, default_boxes
from experiments.workloads.ssd.detections import detections
from experiments.workloads.ssd.encoding import decode, encode

CLASSES = 3
DEFAULTS = default_boxes(64, [Level(4, 16, 20, 30, (2, 3))])


def _outputs(seed, images=2):
  rng = np.random.RandomState(seed)
  shape = images, len(DEFAULTS), 5 + CLASSES
  return rng.normal(size=shape).astype(np.float32)


def _reference(outputs, overlap, least_score):
  """Takes what is clear of all better ones, class by class; then cuts off."""
  boxes = decode(outputs[:, :4], DEFAULTS).numpy()
  scores = np.exp(outputs[:, 4:])
  scores /= scores.sum(axis=1, keepdims=True)
  found = []
  for number in range(1, 1 + CLASSES):
    kept = []
    for index in np.argsort(-scores[:, number]):
      if scores[index, number] > least_score and all(
        detectors.overlap(boxes[index], boxes[other]) <= overlap
        for other in kept
      ):
        kept.append(index)
    found += [
      (scores[index, number], number, *boxes[index].clip(0, 1))
      for index in kept
    ]
  return np.array(sorted(found, reverse=True))


@pytest.mark.parametrize("overlap", [0.2, 0.5])
@pytest.mark.parametrize("least_score", [0.05, 0.4])
def test_what_is_left_is_what_a_plain_search_leaves(overlap, least_score):
  outputs = _outputs(seed=1)
  boxes, scores, classes, counts = detections(
    outputs, DEFAULTS, overlap=overlap, least_score=least_score
  )
  for n, one in enumerate(outputs):
    expected = _reference(one, overlap, least_score)
    count = counts[n]
    assert count == len(expected) > 1
    np.testing.assert_allclose(scores[n, :count], expected[:, 0], rtol=1e-5)
    np.testing.assert_array_equal(classes[n, :count], expected[:, 1])
    np.testing.assert_allclose(boxes[n, :count], expected[:, 2:], atol=1e-5)


def test_no_more_are_kept_than_asked_for_and_those_are_the_best():
  outputs = _outputs(seed=2)
  _, all_scores, _, _ = detections(outputs, DEFAULTS)
  _, scores, _, counts = detections(outputs, DEFAULTS, at_most=4)
  np.testing.assert_array_equal(counts, [4, 4])
  np.testing.assert_array_equal(scores, all_scores[:, :4])


@pytest.mark.parametrize(
  # how far down the second box is: they overlap by 0.28/0.52, 0.25/0.55
  "shift, found",
  [(0.12, 1), (0.15, 2)],
)
def test_by_default_two_may_overlap_by_a_half(shift, found):
  outputs = np.zeros([1, len(DEFAULTS), 5 + CLASSES], np.float32)
  outputs[0, :, 4] = detectors.CERTAIN
  box = np.array([0.2, 0.3, 0.6, 0.7], np.float32)
  boxes = np.stack([box, box + np.float32([shift, 0, shift, 0])])
  outputs[0, :2, :4] = encode(boxes, DEFAULTS[:2])
  outputs[0, :2, 5] = [25, 24]
  _, _, _, counts = detections(outputs, DEFAULTS)
  assert counts[0] == found


def test_a_box_can_be_of_two_classes():
  outputs = np.zeros([1, len(DEFAULTS), 5 + CLASSES], np.float32)
  outputs[0, :, 4] = detectors.CERTAIN
  outputs[0, 9, 4:] = [0, 5, 5, 0]
  boxes, _, classes, counts = detections(outputs, DEFAULTS)
  assert counts[0] == 2
  assert set(classes[0, :2].numpy()) == {1, 2}
  np.testing.assert_allclose(boxes[0, :2], [DEFAULTS[9]] * 2, atol=1e-6)
