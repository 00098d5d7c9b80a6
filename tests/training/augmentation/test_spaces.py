"""The operations and their strengths are those of the papers."""

import numpy as np
import pytest
import tensorflow as tf

from tfecho.training.augmentation import spaces
from tfecho.training.augmentation.policies import POLICIES

SIZE = 331  # pixels: what AutoAugment's table means by translations

BOTH = (-1.0, 1.0)

WITHOUT_STRENGTH = {"identity", "auto_contrast", "equalize", "invert"}
GEOMETRIC = {"rotate", "shear_x", "shear_y", "translate_x", "translate_y"}
ENHANCING = {"color", "contrast", "brightness", "sharpness"}
TWO_OF_LEVELS = {"solarize", "posterize"}
OF_RANDAUGMENT = (
  {"identity", "auto_contrast", "equalize"}
  | GEOMETRIC
  | ENHANCING
  | TWO_OF_LEVELS
)


def strengths(space, name, fractions, sign=1.0, size=SIZE):
  fractions = tf.constant(fractions, tf.float32)
  return space.ranges[name].strength(fractions, sign, size).numpy()


@pytest.mark.parametrize(
  ("space", "operations"),
  [
    (spaces.TRIVIAL, OF_RANDAUGMENT),
    (spaces.RAND, OF_RANDAUGMENT),
    (spaces.AUTO, OF_RANDAUGMENT | {"invert"}),
    (spaces.AUGMIX, OF_RANDAUGMENT - ENHANCING),
  ],
  ids=["trivial", "rand", "auto", "augmix"],
)
def test_the_operations_are_those_of_the_paper(space, operations):
  assert set(space.ranges) == operations
  without = {name for name, limits in space.ranges.items() if limits is None}
  assert without == operations & WITHOUT_STRENGTH
  signed = {name for name, limits in space.ranges.items() if limits}
  signed = {name for name in signed if space.ranges[name].signed}
  assert signed == GEOMETRIC


@pytest.mark.parametrize(
  # operation, what it is told at the weakest, half and strongest level
  ("name", "table"),
  [
    ("rotate", [0, 15, 30]),
    ("solarize", [256, 128, 0]),
    ("posterize", [8, 6, 4]),
    ("color", [0.1, 1.0, 1.9]),
    ("contrast", [0.1, 1.0, 1.9]),
    ("brightness", [0.1, 1.0, 1.9]),
    ("sharpness", [0.1, 1.0, 1.9]),
    ("shear_x", [0, 0.15, 0.3]),
    ("shear_y", [0, 0.15, 0.3]),
    ("translate_x", [0, 75, 150]),
    ("translate_y", [0, 75, 150]),
  ],
)
@pytest.mark.parametrize("space", [spaces.AUTO, spaces.RAND])
def test_ranges_are_those_of_autoaugment(space, name, table):
  np.testing.assert_allclose(
    strengths(space, name, [0, 0.5, 1]), table, rtol=1e-6
  )


@pytest.mark.parametrize(
  ("name", "table"),
  [
    ("rotate", [0, 67, 135]),
    ("solarize", [256, 128, 0]),
    ("posterize", [8, 5, 2]),
    ("color", [0.01, 1.005, 2.0]),
    ("contrast", [0.01, 1.005, 2.0]),
    ("brightness", [0.01, 1.005, 2.0]),
    ("sharpness", [0.01, 1.005, 2.0]),
    ("shear_x", [0, 0.495, 0.99]),
    ("shear_y", [0, 0.495, 0.99]),
    ("translate_x", [0, 16, 32]),
    ("translate_y", [0, 16, 32]),
  ],
)
def test_ranges_are_the_wide_ones_of_trivialaugment(name, table):
  found = strengths(spaces.TRIVIAL, name, [0, 15 / 30, 1])
  np.testing.assert_allclose(found, table, rtol=1e-6)


def test_the_31_strengths_are_cut_off_as_by_the_authors():
  levels = np.arange(31)
  for name, weakest, change in [
    ("rotate", 0, 135), ("posterize", 8, -6), ("solarize", 256, -256),
    ("translate_x", 0, 32),
  ]:  # fmt: skip
    exact = weakest + np.array([int(level * change / 30) for level in levels])
    found = strengths(spaces.TRIVIAL, name, levels / 30)
    np.testing.assert_array_equal(found, exact, name)


@pytest.mark.parametrize(
  ("name", "table"),
  [
    ("rotate", [0, 9, 30]),
    ("solarize", [256, 180, 0]),
    ("posterize", [4, 3, 0]),
    ("shear_x", [0, 0.09, 0.3]),
    ("translate_x", [0, 33, 110]),
  ],
)
def test_ranges_are_those_of_augmix(name, table):
  found = strengths(spaces.AUGMIX, name, [0, 0.3, 1])
  np.testing.assert_allclose(found, table, rtol=1e-6)


@pytest.mark.parametrize("name", sorted(GEOMETRIC))
def test_what_moves_pixels_goes_in_both_directions(name):
  there, back = (strengths(spaces.RAND, name, [0.7], s) for s in BOTH)
  assert there == -back != 0


def test_translations_grow_with_the_image():
  for size, pixels in [(32, 14), (224, 101), (331, 150)]:
    assert strengths(spaces.RAND, "translate_x", [1.0], size=size) == pixels


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_has_25_pairs_of_known_operations(policy):
  parts = POLICIES[policy]
  assert len(parts) == 25
  for name, probability, level in (step for part in parts for step in part):
    assert name in spaces.AUTO.ranges
    assert 0 <= probability <= 1 and level in range(10)
    assert level == 0 or name not in WITHOUT_STRENGTH


def test_the_policies_begin_and_end_as_in_the_paper():
  """Against a slip in the order: the paper numbers them from 0 to 24."""
  cifar10, imagenet = POLICIES["cifar10"], POLICIES["imagenet"]
  assert cifar10[1] == (("rotate", 0.7, 2), ("translate_x", 0.3, 9))
  assert cifar10[24][0] == ("translate_y", 0.7, 9)
  assert imagenet[0] == (("posterize", 0.4, 8), ("rotate", 0.6, 9))
  assert imagenet[23] == (("color", 0.6, 4), ("contrast", 1.0, 8))


class TestApply:
  def draws(self, space, count):
    draw = np.random.RandomState(1)
    index = np.arange(count, dtype=np.int32) % len(space)
    fraction = draw.uniform(size=count).astype(np.float32)
    sign = draw.choice([-1.0, 1.0], size=count).astype(np.float32)
    return tf.constant(index), tf.constant(fraction), tf.constant(sign)

  @pytest.mark.parametrize("space", [spaces.AUTO, spaces.TRIVIAL])
  def test_a_batch_is_changed_as_its_images_are(self, space, photo):
    small = tf.cast(photo[:20, :24], tf.float32)
    images = tf.stack([small] * 2 * len(space))
    drawn = self.draws(space, len(images))
    batch = space.apply(images, *drawn)
    for n in range(len(images)):
      one = space.apply(images[n : n + 1], *(x[n : n + 1] for x in drawn))
      np.testing.assert_array_equal(batch[n], one[0])

  def test_only_the_operation_that_was_chosen_runs(self, photo):
    """They stand in branches, each a function of its own in the graph."""
    image = tf.cast(photo, tf.float32)[None]
    drawn = self.draws(spaces.RAND, 1)
    graph = spaces.RAND._traced_apply.get_concrete_function(image, *drawn).graph
    kinds = [operation.type for operation in graph.get_operations()]
    assert kinds.count("StatelessCase") == 1
    assert "ImageProjectiveTransformV3" not in kinds

  def test_an_empty_batch_stays_empty(self, photo):
    images = tf.zeros([0, 8, 8, 3])
    none = [tf.zeros([0], dtype) for dtype in (tf.int32, tf.float32)]
    assert spaces.AUTO.apply(images, *none, none[1]).shape == images.shape
