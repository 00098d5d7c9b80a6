import hashlib

import numpy as np
import pytest
import tensorflow as tf

from experiments.data import digits, scenes


@pytest.fixture(scope="module", params=["train", "validation"])
def some(request):
  return getattr(scenes, request.param)()


def test_there_are_as_many_as_it_says():
  assert len(scenes.train().files) == scenes.TRAIN_EXAMPLES
  assert len(scenes.validation().files) == scenes.VALIDATION_EXAMPLES


def test_files_are_jpegs_of_one_size(some):
  for file in some.files[:5]:
    assert file.startswith(b"\xff\xd8\xff")
    assert tf.io.decode_jpeg(file).shape == (scenes.SIZE, scenes.SIZE, 3)


def test_every_scene_has_some_digits_apart_from_each_other(some):
  for boxes, labels in zip(some.boxes, some.labels):
    assert boxes.shape == (len(labels), 4) and boxes.dtype == np.float32
    assert 1 <= len(labels) <= scenes.MOST_DIGITS
    covered = np.zeros([scenes.SIZE, scenes.SIZE], int)
    for top, left, bottom, right in (boxes * scenes.SIZE).round().astype(int):
      assert 0 <= top < bottom <= scenes.SIZE
      assert 0 <= left < right <= scenes.SIZE
      covered[top:bottom, left:right] += 1
    assert covered.max() == 1


def test_all_digits_occur_about_as_often(some):
  counts = np.bincount(np.concatenate(some.labels), minlength=scenes.CLASSES)
  assert len(counts) == scenes.CLASSES
  assert counts.min() > 0.6 * counts.mean()


def test_the_ink_of_each_digit_reaches_all_edges_of_its_box():
  night = np.zeros([300, 300, 3], np.uint8)
  rng = np.random.RandomState(0)
  for _ in range(50):
    image, boxes, _ = scenes._scene([night], digits.train(), rng)
    ink = image.any(axis=-1)
    for top, left, bottom, right in (boxes * scenes.SIZE).round().astype(int):
      inside = ink[top:bottom, left:right]
      edges = inside[0], inside[-1], inside[:, 0], inside[:, -1]
      assert all(edge.any() for edge in edges)
      ink[top:bottom, left:right] = False
    assert not ink.any()  # nowhere else


def test_a_digit_stands_out_from_the_photograph(some):
  for file, boxes in zip(some.files[:50], some.boxes):
    image = tf.io.decode_jpeg(file).numpy().astype(int)
    for top, left, bottom, right in (boxes * scenes.SIZE).round().astype(int):
      digit = image[top:bottom, left:right].mean(axis=-1)
      assert digit.max() - digit.min() > 40


def test_training_and_validation_share_no_part_of_a_photograph():
  for photo in scenes._photographs():
    border = scenes._border(photo)
    # Both sides have room for the largest backdrop.
    assert min(border, photo.shape[1] - border, len(photo)) >= 250


def test_scenes_are_the_same_for_ever():
  # Golden: recorded results compare only while the validation set stays.
  data = scenes.validation()
  digest = hashlib.sha256()
  for boxes, labels in zip(data.boxes, data.labels):
    digest.update((boxes * scenes.SIZE).round().astype("<i4").tobytes())
    digest.update(labels.astype("<i8").tobytes())
  assert digest.hexdigest()[:16] == "f20bdb6a62f5a509"
