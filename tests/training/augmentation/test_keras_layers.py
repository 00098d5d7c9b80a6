"""Our operations against the layers of Keras, and those layers in use."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from backends import needs_tensorflow

from tfecho.training import augmentation
from tfecho.training.augmentation import colour, geometry, keras_layers

pytestmark = needs_tensorflow

NEAREST = {
  "fill_mode": "constant", "fill_value": 128.0, "interpolation": "nearest",
}  # fmt: skip


def needs(*names):
  """Skips a test where Keras lacks a layer, as Keras 2.15 lacks most."""
  missing = [name for name in names if not hasattr(keras.layers, name)]
  return pytest.mark.skipif(bool(missing), reason=f"Keras has no {missing}")


def ours(name, images, strength):
  images = tf.cast(images, tf.float32)
  strengths = tf.fill([len(images)], tf.constant(strength, tf.float32))
  if name in colour.OPERATIONS:
    return colour.OPERATIONS[name](images, strengths).numpy()
  transforms = geometry.TRANSFORMS[name](strengths, *images.shape[1:3])
  return geometry.warp(images, transforms, fill=128.0).numpy()


@pytest.fixture
def images(photo):
  return photo[None].astype(np.float32)


def transformed(layer, images, **drawn):
  """What a layer makes of images if it has drawn this."""
  drawn = {name: tf.constant(value) for name, value in drawn.items()}
  return np.asarray(layer.transform_images(tf.constant(images), drawn))


def factor(value):
  return np.full([1, 1, 1, 1], value, np.float32)


@needs("RandomPosterization", "Solarization", "AutoContrast", "RandomSharpness")
class TestColours:
  @pytest.mark.parametrize("bits", [1, 4, 7])
  def test_posterizing_is_the_same(self, images, bits):
    layer = keras.layers.RandomPosterization(4)
    shift = np.array([8 - bits], np.uint8)
    expected = transformed(layer, images, shift_factor=shift)
    np.testing.assert_array_equal(ours("posterize", images, bits), expected)

  @pytest.mark.parametrize("threshold", [0.0, 100.0, 256.0])
  def test_solarizing_is_the_same(self, images, threshold):
    layer = keras.layers.Solarization()
    expected = transformed(
      layer, images, additions=0.0, thresholds=threshold
    )
    np.testing.assert_array_equal(
      ours("solarize", images, threshold), expected
    )

  def test_stretched_contrast_is_the_same_up_to_a_hundredth(self, images):
    expected = transformed(keras.layers.AutoContrast(), images)
    found = ours("auto_contrast", images, 0)
    np.testing.assert_allclose(found, expected, atol=0.01)

  def test_equalized_levels_are_the_same_up_to_two(self, large_photo):
    """Where no single level has many pixels: Pillow leaves the brightest one
    out, Keras the darkest, and Pillow divides in whole numbers of pixels."""
    images = large_photo[None, ..., :1].astype(np.float32)
    expected = transformed(keras.layers.Equalization(), images)
    np.testing.assert_allclose(
      ours("equalize", images, 0), expected, atol=2.0
    )

  @pytest.mark.parametrize("amount", [0.1, 0.7])
  def test_colours_are_the_same_up_to_a_tenth(self, images, amount):
    """Keras says how much is taken away, and of a slightly darker grey."""
    layer = keras.layers.RandomColorDegeneration(0.5)
    expected = transformed(layer, images, factor=factor(1 - amount))
    np.testing.assert_allclose(
      ours("color", images, amount), expected, atol=0.1
    )


@needs("RandomContrast")
@pytest.mark.parametrize("amount", [0.4, 1.5])
def test_contrast_of_grey_images_is_the_same_up_to_a_level(images, amount):
  """Keras takes the mean of each channel, and does not round it."""
  grey = images[..., :1]
  mean = grey.mean()
  expected = np.clip(mean + amount * (grey - mean), 0, 255)
  if hasattr(keras, "ops"):
    layer = keras.layers.RandomContrast(0.5)
    expected = transformed(layer, grey, contrast_factor=np.float32(amount))
  np.testing.assert_allclose(ours("contrast", grey, amount), expected, atol=1)


class TestGeometry:
  """Keras' layers draw from a range: here, one of a single value."""

  def check(self, images, name, strength, layer):
    expected = np.asarray(layer(images, training=True))
    is_off = np.abs(ours(name, images, strength) - expected).max(axis=-1) > 1
    assert is_off.mean() <= 0.01

  @pytest.mark.parametrize("degrees", [30, -17])
  def test_rotations_are_the_same_but_for_a_hundredth(self, images, degrees):
    turn = degrees / 360
    layer = keras.layers.RandomRotation((turn, turn), **NEAREST)
    self.check(images, "rotate", degrees, layer)

  def test_translations_are_the_same(self, images):
    height, width = images.shape[1:3]
    layer = keras.layers.RandomTranslation((0, 0), (0.25, 0.25), **NEAREST)
    self.check(images, "translate_x", -0.25 * width, layer)
    layer = keras.layers.RandomTranslation((0.25, 0.25), (0, 0), **NEAREST)
    self.check(images, "translate_y", -0.25 * height, layer)


@needs("RandAugment")
class TestRand:
  def augment(self, **options):
    return augmentation.get("rand", side="device", layers="keras", **options)

  def test_the_layer_is_keras_own(self, noise, monkeypatch):
    made = []
    layer = keras.layers.RandAugment

    def make(**arguments):
      made.append(arguments)
      return layer(**arguments)

    monkeypatch.setattr(keras.layers, "RandAugment", make)
    self.augment(magnitude=5, num_ops=3)(noise, seed=(1, 2))
    [arguments] = made
    assert arguments["factor"] == 0.15 and arguments["num_ops"] == 3

  def test_the_same_seed_gives_the_same_in_any_order(self, noise):
    augment = self.augment()
    first = augment(noise, seed=(1, 2)).numpy()
    assert np.any(augment(noise, seed=(1, 3)).numpy() != first)
    np.testing.assert_array_equal(augment(noise, seed=(1, 2)), first)
    np.testing.assert_array_equal(self.augment()(noise, seed=(1, 2)), first)

  @pytest.mark.parametrize("dtype", ["uint8", "float32"])
  def test_images_keep_dtype_and_range(self, noise, dtype):
    scale = 1 if dtype == "uint8" else 255
    images = tf.cast(noise / scale, dtype)
    result = self.augment()(images, seed=(1, 2))
    assert result.dtype == dtype and result.shape == images.shape
    values = tf.cast(result, tf.float32).numpy()
    assert values.min() >= 0 and values.max() <= 255 / scale


@needs("MixUp", "CutMix")
@pytest.mark.parametrize("name", ["mixup", "cutmix"])
class TestMixing:
  def mixed(self, name, layers, count=2_000):
    images = tf.tile(
      tf.reshape(tf.range(count, dtype=tf.float32), [-1, 1, 1, 1]), [1, 8, 8, 1]
    )
    augment = augmentation.get(
      name, side="device", layers=layers, alpha=0.5, value_range=(0, 255)
    )
    labels = tf.one_hot(tf.range(count), count)
    return augment(images, labels, seed=(1, 2))

  def test_where_keras_has_a_layer_it_is_the_default(self, name):
    default = augmentation.get(name, side="device")
    of_keras, own = (
      augmentation.get(name, side="device", layers=layers)
      for layers in ("keras", "own")
    )
    images = tf.random.stateless_uniform([8, 8, 8, 3], (1, 2))
    results = [
      augment(images, tf.eye(8), seed=(1, 2))[0].numpy()
      for augment in (default, of_keras, own)
    ]
    np.testing.assert_array_equal(results[0], results[1])
    assert np.any(results[0] != results[2])

  def test_ours_and_that_of_keras_mix_as_much(self, name):
    """Compared by the share that examples keep: means and variances."""
    own, of_keras = (
      np.diag(self.mixed(name, layers)[1].numpy())
      for layers in ("own", "keras")
    )
    # Of the mean of 2,000 shares, of a standard deviation of a half at most.
    error = 0.5 * (2 / 2_000) ** 0.5
    if name == "mixup":
      assert abs(own.mean() - of_keras.mean()) < 5 * error
      assert abs(own.var() - of_keras.var()) < 0.03
    else:
      # Keras' rectangles lie inside; those of the paper may go beyond an edge.
      assert own.mean() > of_keras.mean() + 5 * error

  def test_labels_say_what_an_image_is_made_of(self, name):
    images, labels = self.mixed(name, "keras")
    if name == "mixup":
      content = tf.reduce_mean(images, axis=(1, 2, 3)).numpy()
      np.testing.assert_allclose(
        content, labels.numpy() @ np.arange(len(content)), rtol=1e-3, atol=0.1
      )
    np.testing.assert_allclose(labels.numpy().sum(axis=1), 1, rtol=1e-4)


def test_keras_augmix_is_refused():
  with pytest.raises(ValueError, match='`layers`="keras": Keras .* for augmix'):
    augmentation.get("augmix", side="device", layers="keras")


@needs("CutMix")
def test_what_keras_cutmix_does_not_take_is_refused():
  with pytest.raises(ValueError, match="`alpha` must be at most 1 .* got 2"):
    augmentation.get("cutmix", side="device", alpha=2)


@pytest.mark.parametrize("name", ["mixup", "cutmix"])
def test_where_keras_has_no_layer_ours_augments_and_the_log_says_so(
  name, monkeypatch, caplog
):
  monkeypatch.setattr(keras_layers, "has", lambda name: False)
  with caplog.at_level("INFO", logger="tfecho"):
    augment = augmentation.get(name, side="device")
  assert f"has no layer for {name}, so that ours augments" in caplog.text
  images = tf.random.stateless_uniform([8, 8, 8, 3], (1, 2))
  results = [
    each(images, tf.eye(8), seed=(1, 2))[0]
    for each in (augment, augmentation.get(name))
  ]
  np.testing.assert_array_equal(*results)
