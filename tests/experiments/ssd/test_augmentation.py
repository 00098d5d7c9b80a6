import detectors
import numpy as np
import pytest
import tensorflow as tf

from experiments.workloads.ssd import objects as columns
from experiments.workloads.ssd.augmentation import (
  augmentation,
  crop_window,
  resized,
)

SIZE = 64
SEEDS = 60
# Green on magenta: both stay what they are however they are recoloured.
BOX = np.array([0.25, 0.3, 0.6, 0.9], np.float32)


def _image_and_objects(height=80, width=100):
  image = np.full([height, width, 3], (255, 0, 255), np.uint8)
  top, left, bottom, right = np.round(BOX * ([height, width] * 2)).astype(int)
  image[top:bottom, left:right] = (0, 255, 0)
  objects = np.zeros([3, columns.COLUMNS], np.float32)
  objects[1] = [*BOX, 7, 0]
  return image, objects


def _augmented(seeds, *, image=None, objects=None, **options):
  default_image, default_objects = _image_and_objects()
  image = default_image if image is None else image
  objects = default_objects if objects is None else objects
  augment = tf.function(augmentation(SIZE, **options))
  for seed in seeds:
    seed = tf.constant([3, seed], tf.int64)
    image_out, objects_out = augment(image, objects, seed=seed)
    yield image_out.numpy(), objects_out.numpy()


def _green(image):
  image = image.astype(int)
  return image[..., 1] > image[..., [0, 2]].max(axis=-1) + 20


def _extent(mask):
  rows, columns_ = (np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0))
  return [rows[0], columns_[0], rows[-1] + 1, columns_[-1] + 1]


def test_boxes_stay_on_their_objects():
  boxes = []
  for image, objects in _augmented(range(SEEDS)):
    assert image.shape == (SIZE, SIZE, 3) and image.dtype == np.uint8
    # A crop has the center of an object in it, and here is only one.
    np.testing.assert_array_equal(columns.classes(objects), [0, 7, 0])
    boxes.append(columns.boxes(objects)[1])
    # Edges are blurred by less than two pixels.
    np.testing.assert_allclose(
      SIZE * boxes[-1], _extent(_green(image)), atol=2
    )
  assert len(np.unique(boxes, axis=0)) > SEEDS / 2


def test_some_are_larger_than_before_and_some_smaller():
  area = (BOX[2] - BOX[0]) * (BOX[3] - BOX[1])
  areas = [_green(image).mean() for image, _ in _augmented(range(SEEDS))]
  assert min(areas) < 0.6 * area and max(areas) > 1.5 * area


def test_half_of_them_are_mirrored():
  image, objects = _image_and_objects()
  image[:, :50, 0] = 128  # darker on the left
  options = {"expansion": 1.0, "least_side": 1.0}
  count = sum(
    new[0, 0].sum() > new[0, -1].sum()
    for new, _ in _augmented(range(200), image=image, **options)
  )
  assert 70 < count < 130  # 4 standard deviations
  never = _augmented(range(20), image=image, mirror=False, **options)
  assert all(new[0, 0].sum() < new[0, -1].sum() for new, _ in never)


def test_the_same_seed_gives_the_same_and_another_one_does_not():
  (one, boxes), (same, same_boxes), (other, _) = _augmented([5, 5, 6])
  np.testing.assert_array_equal(one, same)
  np.testing.assert_array_equal(boxes, same_boxes)
  assert np.any(one != other)


def test_an_image_without_objects_is_shown_without_objects():
  objects = np.zeros([3, columns.COLUMNS], np.float32)
  for image, others in _augmented(range(5), objects=objects):
    assert image.shape == (SIZE, SIZE, 3)
    assert not others.any()


@pytest.mark.parametrize("shape", [(1, 1), (3, 200), (300, 64)])
def test_images_of_any_size_become_of_one_size(shape):
  image = np.zeros([*shape, 3], np.uint8)
  objects = np.zeros([2, columns.COLUMNS], np.float32)
  for new, _ in _augmented(range(3), image=image):
    assert new.shape == (SIZE, SIZE, 3)
  new, same = resized(SIZE)(image, objects)
  assert new.shape == (SIZE, SIZE, 3)
  np.testing.assert_array_equal(same, objects)


def _crops(boxes, least_side):
  crop = tf.function(crop_window)
  return np.array(
    [
      crop(boxes, least_side, tf.constant([1, seed], tf.int64))
      for seed in range(200)
    ]
  )


def _crops_by_chance(box, least_side, count):
  """Crops with the center of a box in them, not too oblong."""
  rng = np.random.RandomState(0)
  sides = rng.uniform(least_side, 1, (20 * count, 2))
  start = rng.uniform(size=sides.shape) * (1 - sides)
  center = (box[:2] + box[2:]) / 2
  fits = np.all((start < center) & (center < start + sides), axis=1)
  fits &= np.abs(np.log2(sides[:, 0] / sides[:, 1])) < 1
  return np.concatenate([start, start + sides], axis=1)[fits][:count]


def _share(crops, box, least):
  return np.mean([detectors.overlap(crop, box) > least for crop in crops])


class TestCrops:
  BOXES = detectors.random_boxes(np.random.RandomState(0), 3)

  def test_they_are_parts_of_the_image_and_not_too_small_or_oblong(self):
    crops = _crops(self.BOXES, 0.3)
    assert crops.min() >= 0 and crops.max() <= 1
    height, width = (crops[:, 2:] - crops[:, :2]).T
    assert min(height.min(), width.min()) > 0.3 - 1e-6
    assert np.all(np.abs(np.log2(height / width)) < 1 + 1e-6)

  def test_each_has_the_center_of_an_object_in_it(self):
    centers = (self.BOXES[:, :2] + self.BOXES[:, 2:]) / 2
    for crop in _crops(self.BOXES, 0.3):
      inside = (centers > crop[:2]) & (centers < crop[2:])
      assert inside.all(axis=1).any()

  def test_more_overlap_an_object_well_than_chance_would_have_it(self):
    box = np.array([0.2, 0.2, 0.7, 0.8], np.float32)
    crops = _crops(box[np.newaxis], 0.3)
    any_crops = _crops_by_chance(box, 0.3, count=2_000)
    # One in seven is to overlap it by 0.7.
    assert _share(crops, box, 0.7) > 2 * _share(any_crops, box, 0.7)

  def test_some_show_the_whole_image(self):
    crops = _crops(self.BOXES, 0.3)
    whole = np.all(crops == [0, 0, 1, 1], axis=1).mean()
    assert 1 / 14 < whole < 6 / 7

  def test_without_objects_it_is_the_whole_image(self):
    crops = _crops(np.zeros([0, 4], np.float32), 0.3)
    np.testing.assert_array_equal(crops, [[0, 0, 1, 1]] * len(crops))
