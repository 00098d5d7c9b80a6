import numpy as np
import pytest
import tensorflow as tf

from tfecho.training import augmentation

COUNT = 200
SEED = (3, 4)
BOTH = pytest.mark.parametrize("name", ["mixup", "cutmix"])


def one_colour_each(dtype="float32", size=16):
  """Images whose only value, and class, is their number."""
  values = tf.reshape(tf.range(COUNT), [-1, 1, 1, 1])
  images = tf.cast(tf.tile(values, [1, size, size, 1]), dtype)
  return images, tf.one_hot(tf.range(COUNT), COUNT)


def mixed(name, images, labels, **options):
  augment = augmentation.get(name, value_range=(0, 255), **options)
  return augment(images, labels, seed=SEED)


@BOTH
def test_labels_say_what_an_image_is_made_of(name):
  images, labels = mixed(name, *one_colour_each())
  values = np.arange(COUNT)
  content = tf.reduce_mean(images, axis=(1, 2, 3)).numpy()
  np.testing.assert_allclose(content, labels.numpy() @ values, atol=0.02)
  np.testing.assert_allclose(labels.numpy().sum(axis=1), 1, rtol=1e-5)


@BOTH
def test_every_image_gives_to_exactly_one(name):
  _, labels = mixed(name, *one_colour_each(), alpha=1.0)
  own = np.eye(COUNT, dtype=bool)
  given = np.where(own, 0, labels.numpy())
  assert (np.count_nonzero(given, axis=1) <= 1).all()
  assert (np.count_nonzero(given, axis=0) <= 1).all()
  assert np.count_nonzero(given) > 0.9 * COUNT


def test_mixup_averages_pixels():
  images, labels = mixed("mixup", *one_colour_each(), alpha=1.0)
  flat = images.numpy().reshape(COUNT, -1)
  np.testing.assert_allclose(flat, flat[:, :1] * np.ones_like(flat))
  shares = np.diag(labels)
  assert abs(shares.mean() - 0.5) < 5 * (1 / 12 / COUNT) ** 0.5


def test_cutmix_shows_a_rectangle_of_another_image():
  images, _ = mixed("cutmix", *one_colour_each())
  heights, widths = [], []
  for number, image in enumerate(images.numpy()[..., 0]):
    rows, columns = np.nonzero(image != number)
    if len(rows):
      height, width = np.ptp(rows) + 1, np.ptp(columns) + 1
      assert len(rows) == height * width
      heights.append(height)
      widths.append(width)
  assert min(heights) <= 4 and max(heights) >= 13
  assert min(widths) <= 4 and max(widths) >= 13


@BOTH
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
def test_images_keep_their_dtype(name, dtype):
  images, labels = one_colour_each(dtype)
  result = mixed(name, images, labels)
  assert result[0].dtype == images.dtype and result[0].shape == images.shape
  assert result[1].dtype == labels.dtype


@BOTH
def test_weights_of_examples_are_handed_on(name):
  images, labels = one_colour_each()
  *_, weights = augmentation.get(name)(
    images, labels, tf.range(COUNT), seed=SEED
  )
  np.testing.assert_array_equal(weights, range(COUNT))


@BOTH
@pytest.mark.parametrize(
  ("labels", "message"),
  [
    ([tf.range(COUNT)], "`labels` must be one-hot .* got int32 of shape"),
    ([tf.zeros([COUNT])], "`labels` must be one-hot .* got float32 of shape"),
    ([], "`labels` are missing"),
  ],
)
def test_labels_that_can_not_be_mixed_are_refused(name, labels, message):
  images, _ = one_colour_each()
  with pytest.raises(ValueError, match=message):
    augmentation.get(name)(images, *labels, seed=SEED)


@BOTH
def test_a_single_image_has_nothing_to_be_mixed_with(name):
  images, labels = one_colour_each()
  with pytest.raises(ValueError, match=r"`images` .* \[batch, height, width"):
    augmentation.get(name)(images[0], labels[0], seed=SEED)
