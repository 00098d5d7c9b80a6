"""What holds for every augmentation, on either side."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from backends import needs_tensorflow

from tfecho.training import augmentation

SINGLE = ["none", "crop_flip", "trivial", "rand", "augmix", "auto"]
RANDOM = [name for name in SINGLE if name != "none"]
SEEDS = [(0, n) for n in range(12)]

for_each = pytest.mark.parametrize("name", SINGLE)
for_each_random = pytest.mark.parametrize("name", RANDOM)
on_both_sides = pytest.mark.parametrize(
  "side", ["host", pytest.param("device", marks=needs_tensorflow)]
)


def test_the_names_are_these():
  assert augmentation.NAMES == (*SINGLE, "mixup", "cutmix")
  assert augmentation.SIDES == ("host", "device")


@needs_tensorflow
@for_each
def test_host_and_device_compute_the_same(name, noise):
  host, device = (
    augmentation.get(name, side=side) for side in augmentation.SIDES
  )
  results = [augment(noise, seed=(1, 2)) for augment in (host, device)]
  np.testing.assert_array_equal(*results)


@for_each_random
@on_both_sides
def test_the_same_seed_gives_the_same_and_another_one_does_not(
  name, side, noise
):
  augment = augmentation.get(name, side=side)
  one, same, other = (augment(noise, seed=(1, n)).numpy() for n in (2, 2, 3))
  np.testing.assert_array_equal(one, same)
  assert np.any(one != other)


@for_each_random
def test_images_of_a_batch_are_augmented_differently(name, photo):
  copies = tf.repeat(photo[None, :20, :24], 12, axis=0)
  results = augmentation.get(name)(copies, seed=(1, 2)).numpy()
  assert len(np.unique(results.reshape(12, -1), axis=0)) > 6


@for_each
def test_a_single_image_is_augmented_as_a_batch_of_one(name, noise):
  augment = augmentation.get(name)
  for seed in SEEDS:
    single = augment(noise[0], seed=seed)
    assert single.shape == noise[0].shape
    np.testing.assert_array_equal(single, augment(noise[:1], seed=seed)[0])


@for_each
@pytest.mark.parametrize("channels", [1, 3])
def test_floating_point_is_augmented_as_whole_levels_are(
  name, channels, photo
):
  """Within a level: uint8 is rounded once, at the end."""
  pixels = photo[:24, :32, :channels]
  for seed in SEEDS:
    whole = augmentation.get(name)(pixels, seed=seed)
    assert whole.dtype == tf.uint8
    for value_range, scale in [((0, 1), 255), ((0, 255), 1)]:
      augment = augmentation.get(name, value_range=value_range)
      floating = augment(tf.constant(pixels / scale, tf.float32), seed=seed)
      assert floating.dtype == tf.float32
      difference = np.abs(scale * floating.numpy() - whole.numpy())
      # A value that is all but a whole number may fall to either side of an
      # edge that an operation has.
      assert np.mean(difference > 0.51) < 0.02


@for_each
@pytest.mark.parametrize("dtype", ["float16", "float64", "bfloat16"])
def test_other_floating_point_keeps_its_dtype(name, dtype, noise):
  images = tf.cast(noise / 255, dtype)
  result = augmentation.get(name)(images, seed=(1, 2))
  assert result.dtype == images.dtype
  values = tf.cast(result, tf.float32).numpy()
  assert values.min() >= -1e-6 and values.max() <= 1.01


@for_each
@pytest.mark.parametrize("size", [(32, 32), (224, 224), (48, 31)])
def test_shapes_stay_as_they_are(name, size):
  images = tf.zeros([2, *size, 3], tf.uint8)
  augment = augmentation.get(name)
  assert augment(images, seed=(1, 2)).shape == images.shape
  assert augment(images[0], seed=(1, 2)).shape == images.shape[1:]


@for_each
def test_sizes_may_be_unknown_when_a_pipeline_is_built(name):
  png = tf.io.encode_png(tf.zeros([20, 24, 3], tf.uint8))
  unknown = tf.data.Dataset.from_tensors(png).map(
    lambda contents: tf.io.decode_png(contents, channels=3)
  )
  augmented = unknown.apply(augmentation.mapped(augmentation.get(name)))
  assert augmented.element_spec.shape.as_list() == [None, None, 3]
  assert next(iter(augmented)).shape == (20, 24, 3)


@for_each
def test_what_belongs_to_an_image_is_handed_on(name, noise):
  augment = augmentation.get(name)
  image, label, weight = augment(noise[0], 7, 0.5, seed=(1, 2))
  np.testing.assert_array_equal(image, augment(noise[0], seed=(1, 2)))
  assert (label, weight) == (7, 0.5)


class TestChain:
  def test_augmentations_run_in_order(self, noise):
    crop, invert = augmentation.get("crop_flip"), augmentation.get("none")
    invert._change = lambda images, seed: 255 - images
    results = [
      augmentation.chain(*order)(noise, seed=(1, 2)).numpy()
      for order in ([crop, invert], [invert, crop])
    ]
    # What comes from outside is black, and white once it is inverted.
    assert np.any(results[0] != results[1])

  def test_each_draws_for_itself(self, noise):
    twice = augmentation.chain(*[augmentation.get("crop_flip")] * 2)
    flips = augmentation.get("crop_flip", padding=0)
    flips = augmentation.chain(flips, flips)
    results = [flips(noise[:1], seed=seed).numpy() for seed in SEEDS]
    # If both drew the same, every image would be mirrored twice or never.
    assert any(np.any(result != noise[:1]) for result in results)
    assert twice.__name__ == "crop_flip, crop_flip"

  def test_labels_go_through_all_of_it(self, noise):
    augment = augmentation.chain(
      augmentation.get("crop_flip"), augmentation.get("mixup")
    )
    assert augment.on_batches and augment.side == "host"
    images, labels = augment(noise, tf.eye(8), seed=(1, 2))
    assert images.shape == noise.shape and labels.shape == (8, 8)

  @needs_tensorflow
  def test_sides_can_not_be_mixed(self):
    both = [augmentation.get("none", side=side) for side in augmentation.SIDES]
    for wrong in (both, [], [abs]):
      with pytest.raises(ValueError, match="`augments` must be .* one side"):
        augmentation.chain(*wrong)


def test_the_device_side_needs_tensorflow(monkeypatch):
  monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
  augmentation.get("rand")
  message = '`side`="device" needs .* this is \'jax\': leave `side` out'
  with pytest.raises(ValueError, match=message):
    augmentation.get("rand", side="device")


class TestBadArguments:
  @pytest.mark.parametrize(
    ("arguments", "message"),
    [
      ({"name": "best"}, "`name` must be one of none, crop_flip.* got 'best'"),
      ({"side": "gpu"}, "`side` must be one of host, device, got 'gpu'"),
      ({"layers": "torch"}, "`layers` must be None or .* got 'torch'"),
      ({"layers": "keras"}, '`layers`="keras" needs `side`="device"'),
      ({"value_range": (-1, 1)}, r"`value_range` .* got \(-1, 1\)"),
      ({"value_range": 255}, "`value_range` .* got 255"),
      ({"magnitude": 11}, "`magnitude` must be from 0 to 10, got 11"),
      ({"magnitude": -1}, "`magnitude` must be from 0 to 10, got -1"),
      ({"magnitude": "9"}, "`magnitude` must be a finite number, got '9'"),
      ({"num_ops": 0}, "`num_ops` must be an int of at least 1, got 0"),
      ({"depth": 2}, "`depth` is no option of rand, which has magnitude, num_"),
      ({"name": "trivial", "magnitude": 3}, "`magnitude` is no option .* none"),
      ({"name": "crop_flip", "padding": -1}, "`padding` must .* got -1"),
      ({"name": "augmix", "severity": 0}, "`severity` must be from 0.1 to 10"),
      ({"name": "augmix", "width": 0}, "`width` must be .* got 0"),
      ({"name": "augmix", "depth": 0}, "`depth` must be .* got 0"),
      ({"name": "augmix", "alpha": 0}, "`alpha` must be .* above 0, got 0"),
      ({"name": "auto", "policy": "svhn"}, "`policy` must be .* got 'svhn'"),
      ({"name": "mixup", "alpha": -1}, "`alpha` must be .* got -1"),
    ],
  )
  def test_they_are_refused_by_name_and_value(self, arguments, message):
    with pytest.raises(ValueError, match=message):
      augmentation.get(**{"name": "rand", **arguments})

  @for_each
  @pytest.mark.parametrize(
    ("images", "message"),
    [
      (tf.zeros([8, 8, 3], tf.int32), "`images` must be uint8 or .* got int32"),
      (tf.zeros([8, 8, 4]), r"`images` .* 1 or 3 channels, got \(8, 8, 4\)"),
      (tf.zeros([8, 8]), r"`images` must have the shape \[height, .*\(8, 8\)"),
      ({"image": 1}, "`images` must be a tensor, got a dict"),
    ],
  )
  def test_so_are_images(self, name, images, message):
    with pytest.raises(ValueError, match=message):
      augmentation.get(name)(images, seed=(1, 2))

  @pytest.mark.parametrize("seed", [1, (0.5, 1.0), (1, 2, 3)])
  def test_so_is_a_seed(self, seed, noise):
    with pytest.raises(ValueError, match="`seed` must be two whole numbers"):
      augmentation.get("rand")(noise, seed=seed)
