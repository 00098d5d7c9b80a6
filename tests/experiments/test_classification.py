import numpy as np
import pytest
import tensorflow as tf

from experiments.workloads import classification

# Every pixel differs from all others and from the padding.
IMAGE = np.arange(1, 36, dtype=np.float32).reshape(5, 7, 1)


def _augmented(augment, seeds=200):
  return [
    augment(IMAGE, 3, tf.constant([7, seed], tf.int64))[0].numpy()
    for seed in range(seeds)
  ]


def _windows(image, padding):
  """Every crop that there is, as bytes."""
  paddings = [(padding, padding), (padding, padding), (0, 0)]
  padded = np.pad(image, paddings)
  height, width, _ = image.shape
  return {
    padded[top : top + height, left : left + width].tobytes()
    for top in range(2 * padding + 1)
    for left in range(2 * padding + 1)
  }


def test_a_crop_is_each_window_of_the_padded_image_in_turn():
  crops = _augmented(classification.pad_and_crop(1))
  # 200 draws miss one of nine with probability 5e-10.
  assert {crop.tobytes() for crop in crops} == _windows(IMAGE, 1)


def test_every_crop_comes_mirrored_too():
  crops = _augmented(classification.crop_and_flip(1))
  straight, mirrored = _windows(IMAGE, 1), _windows(IMAGE[:, ::-1], 1)
  # 200 draws miss one of eighteen with probability 2e-4, for these seeds none.
  assert {crop.tobytes() for crop in crops} == straight | mirrored


def test_the_augmentation_depends_on_the_seed_and_on_nothing_else():
  augment = classification.crop_and_flip(2)
  np.testing.assert_array_equal(_augmented(augment, 9), _augmented(augment, 9))
  image, label = augment(IMAGE, 3, tf.constant([0, 0], tf.int64))
  assert (image.shape, label) == (IMAGE.shape, 3)


@pytest.mark.parametrize(
  "options, subtracted", [({}, 1e-3), ({"weight_decay": 5e-4}, 5e-3)]
)
def test_a_weight_loses_ten_times_of_what_is_added_to_a_gradient(
  options, subtracted
):
  optimizer = classification.momentum(0.1, **options)
  assert optimizer.weight_decay == pytest.approx(subtracted)
