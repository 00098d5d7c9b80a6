import detectors
import numpy as np
import pytest

from experiments.workloads.ssd import boxes
from experiments.workloads.ssd.boxes import SSD300, Level


class TestDefaultBoxes:
  def test_an_image_of_300_pixels_has_8732(self):
    defaults = boxes.default_boxes(300, SSD300)
    assert defaults.shape == (8_732, 4)
    assert defaults.dtype == np.float32

  def test_they_are_parts_of_the_image(self):
    defaults = boxes.default_boxes(300, SSD300)
    assert defaults.min() == 0 and defaults.max() == 1
    assert np.all(defaults[:, :2] < defaults[:, 2:])

  def test_positions_go_row_by_row_and_shapes_within_a_position(self):
    level = Level(2, 50, size=16, next_size=25, ratios=(4,))
    pixels = 100 * boxes.default_boxes(100, [level])
    centers = (pixels[:, :2] + pixels[:, 2:]) / 2
    sides = pixels[:, 2:] - pixels[:, :2]
    np.testing.assert_allclose(
      centers[::4], [[25, 25], [25, 75], [75, 25], [75, 75]], rtol=1e-5
    )
    # A square, one between it and the next, a wide and a high one.
    expected = [[16, 16], [20, 20], [8, 32], [32, 8]]
    np.testing.assert_allclose(sides, expected * 4, rtol=1e-4)

  def test_what_is_outside_of_the_image_is_cut_off(self):
    level = Level(1, 10, size=20, next_size=20, ratios=())
    np.testing.assert_array_equal(
      boxes.default_boxes(10, [level]), [[0, 0, 1, 1]] * 2
    )

  @pytest.mark.parametrize(
    # the first box of a level: index, half of its side and center, in pixels
    "index, half, center",
    [(5_776, 22.5, 8), (7_942, 49.5, 16), (8_728, 130.5, 150)],
  )
  def test_levels_follow_each_other(self, index, half, center):
    box = 300 * boxes.default_boxes(300, SSD300)[index]
    lower, upper = max(center - half, 0), center + half
    np.testing.assert_allclose(box, [lower, lower, upper, upper], rtol=1e-5)


class TestOverlaps:
  def test_they_are_those_of_each_pair(self):
    rng = np.random.RandomState(0)
    some = [detectors.random_boxes(rng, 5) for _ in range(2)]
    others = detectors.random_boxes(rng, 7)
    expected = [
      [[detectors.overlap(a, b) for b in others] for a in image]
      for image in some
    ]
    actual = boxes.overlaps(np.stack(some), others)
    np.testing.assert_allclose(actual, expected, atol=1e-6)

  @pytest.mark.parametrize(
    "other, expected",
    [
      ((0, 0, 0.5, 0.5), 1),
      ((0.5, 0, 1, 0.5), 0),  # touches
      ((0.6, 0.6, 1, 1), 0),
      ((0.25, 0, 0.75, 0.5), 1 / 3),
      ((0.2, 0.2, 0.2, 0.2), 0),  # a point
    ],
  )
  def test_they_are_intersection_by_union(self, other, expected):
    box = np.array([[0, 0, 0.5, 0.5]], np.float32)
    overlaps = boxes.overlaps(box, np.array([other], np.float32))
    np.testing.assert_allclose(overlaps, [[expected]], rtol=1e-6)

  def test_two_points_have_nothing_in_common(self):
    point = np.full([1, 4], 0.5, np.float32)
    np.testing.assert_array_equal(boxes.overlaps(point, point), [[0]])
