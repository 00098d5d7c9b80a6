import numpy as np
import pytest
import tensorflow as tf

from experiments.workloads.ssd import objects as columns
from experiments.workloads.ssd import windows

IMAGE = np.random.RandomState(0).randint(0, 256, (20, 30, 3)).astype(np.uint8)


@pytest.mark.parametrize("size", [8, 20, 50])
def test_the_whole_image_is_resized_as_tensorflow_does(size):
  expected = tf.image.resize(IMAGE, (size, size), antialias=True)
  actual = windows.resample(IMAGE, windows.WHOLE, size)
  assert actual.dtype == tf.uint8
  np.testing.assert_allclose(actual, expected, atol=0.51)


def test_a_part_of_an_image_is_cut_out():
  window = [5 / 20, 10 / 30, 15 / 20, 20 / 30]
  actual = windows.resample(IMAGE, window, 10)
  np.testing.assert_array_equal(actual, IMAGE[5:15, 10:20])


def test_outside_of_the_image_it_is_grey():
  square = IMAGE[:, :20]
  actual = windows.resample(square, [-0.5, 0.0, 1.5, 2.0], 40).numpy()
  np.testing.assert_array_equal(actual[10:30, :20], square)
  actual[10:30, :20] = actual[0, 0]
  assert len(np.unique(actual.reshape(-1, 3), axis=0)) == 1


def test_boxes_are_moved_into_the_coordinates_of_a_window():
  box = np.array([[0.5, 0.25, 0.75, 0.5]], np.float32)
  moved = windows.within(box, tf.constant([0.5, 0.0, 1.0, 0.5]))
  np.testing.assert_allclose(moved, [[0, 0.5, 0.5, 1]])


def test_a_window_of_a_canvas_is_one_of_the_image():
  canvas = tf.constant([-1.0, 0.0, 1.0, 2.0])
  window = tf.constant([0.5, 0.25, 1.0, 0.5])
  np.testing.assert_allclose(
    windows.outward(window, canvas), [0, 0.5, 1, 1], atol=1e-6
  )


def test_objects_with_their_center_in_the_window_are_shown_cut_off():
  rows = [
    [0.1, 0.1, 0.3, 0.3, 1, 0],
    [0.2, 0.2, 0.9, 0.9, 2, 0],  # its center is outside
    [0.0, 0.0, 0.0, 0.0, 0, 0],
    [0.2, 0.2, 0.6, 0.6, 3, 1],
  ]
  shown = windows.show(tf.constant(rows), tf.constant([0.0, 0.0, 0.5, 0.5]))
  np.testing.assert_array_equal(columns.classes(shown), [1, 0, 0, 3])
  np.testing.assert_allclose(
    columns.boxes(shown),
    [[0.2, 0.2, 0.6, 0.6], [0] * 4, [0] * 4, [0.4, 0.4, 1, 1]],
    atol=1e-6,
  )
