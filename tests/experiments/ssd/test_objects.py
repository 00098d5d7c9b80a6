import numpy as np
import pytest

from experiments.workloads.ssd import objects

BOXES = np.array([[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8]], np.float32)


def test_packed_objects_are_rows_and_the_rest_is_empty():
  packed = objects.pack(
    BOXES, np.array([3, 80]), np.array([False, True]), rows=4
  )
  np.testing.assert_array_equal(objects.boxes(packed)[:2], BOXES)
  np.testing.assert_array_equal(objects.classes(packed), [3, 80, 0, 0])
  np.testing.assert_array_equal(objects.crowd(packed), [0, 1, 0, 0])
  np.testing.assert_array_equal(packed[2:], np.zeros([2, objects.COLUMNS]))


@pytest.mark.parametrize("count", [0, 1])
def test_objects_beyond_the_rows_are_left_out(count):
  packed = objects.pack(
    BOXES, np.array([3, 80]), np.array([False, True]), rows=count
  )
  np.testing.assert_array_equal(objects.classes(packed), [3][:count])


def test_several_images_are_packed_as_each_of_them():
  images = [BOXES, BOXES[:0], BOXES[1:]]
  classes = [np.array([3, 80]), np.array([], int), np.array([7])]
  packed = objects.pack_all(images, classes, rows=3)
  for one, boxes, numbers in zip(packed, images, classes):
    alone = objects.pack(boxes, numbers, numbers < 0, rows=3)
    np.testing.assert_array_equal(one, alone)
