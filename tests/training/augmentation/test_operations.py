"""Every operation against Pillow, which the papers used."""

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image, ImageEnhance, ImageOps

from tfecho.training.augmentation import colour, geometry

FILL = 128

# Pillow cuts off where we round, and rounds in between.
ONE_LEVEL = 1


def changed(name, pixels, strength, **options):
  """What an operation makes of one image, as float32."""
  images = tf.cast(pixels, tf.float32)[None]
  strengths = tf.constant([strength], tf.float32)
  if name in colour.OPERATIONS:
    return colour.OPERATIONS[name](images, strengths)[0].numpy()
  transforms = geometry.TRANSFORMS[name](strengths, *images.shape[1:3])
  warped = geometry.warp(images, transforms, fill=float(FILL), **options)
  return warped.numpy()[0]


def pillow_colour(name, image, strength):
  one_by_one = {
    "identity": lambda: image,
    "invert": lambda: ImageOps.invert(image),
    "auto_contrast": lambda: ImageOps.autocontrast(image),
    "equalize": lambda: ImageOps.equalize(image),
    "posterize": lambda: ImageOps.posterize(image, int(strength)),
    "solarize": lambda: ImageOps.solarize(image, int(strength)),
  }
  if name in one_by_one:
    return one_by_one[name]()
  return getattr(ImageEnhance, name.capitalize())(image).enhance(strength)


def pillow_geometry(name, image, strength, resample):
  options = {"resample": resample, "fillcolor": (FILL,) * 3}
  if name == "rotate":
    return image.rotate(strength, **options)
  data = {
    "shear_x": (1, strength, 0, 0, 1, 0),
    "shear_y": (1, 0, 0, strength, 1, 0),
    "translate_x": (1, 0, strength, 0, 1, 0),
    "translate_y": (1, 0, 0, 0, 1, strength),
  }
  affine = Image.Transform.AFFINE
  return image.transform(image.size, affine, data[name], **options)


def deviation(ours, image):
  """By how many levels each pixel is off, in its worst channel."""
  pixels = np.asarray(image).astype(np.float32)
  return np.abs(np.round(ours) - pixels.reshape(ours.shape)).max(axis=-1)


@pytest.mark.parametrize(
  # operation, strengths, levels that a pixel may be off
  ("name", "strengths", "tolerance"),
  [
    ("identity", [0], 0),
    ("invert", [0], 0),
    ("auto_contrast", [0], ONE_LEVEL),
    ("equalize", [0], 0),
    ("posterize", [1, 2, 4, 7, 8], 0),
    ("solarize", [0, 17, 128, 256], 0),
    ("brightness", [0.01, 0.1, 1, 1.9, 2], ONE_LEVEL),
    ("contrast", [0.01, 0.1, 1, 1.9, 2], ONE_LEVEL),
    ("color", [0.01, 0.1, 1, 1.9, 2], ONE_LEVEL),
    ("sharpness", [0.01, 0.1, 1, 1.9, 2], ONE_LEVEL),
  ],
)
class TestColours:
  def check(self, name, strengths, tolerance, image):
    for strength in strengths:
      ours = changed(name, pixels_of(image), strength)
      reference = pillow_colour(name, image, strength)
      assert deviation(ours, reference).max() <= tolerance, strength

  def test_a_photograph_looks_as_in_pillow(
    self, name, strengths, tolerance, photo
  ):
    self.check(name, strengths, tolerance, Image.fromarray(photo))

  def test_so_do_other_pixels_everywhere(
    self, name, strengths, tolerance, noise
  ):
    self.check(name, strengths, tolerance, Image.fromarray(noise[0]))

  def test_so_does_a_grey_photograph(self, name, strengths, tolerance, photo):
    if name == "color":
      pytest.skip("without colours, there is nothing to compare")
    image = Image.fromarray(photo).convert("L")
    self.check(name, strengths, tolerance, image)

  def test_so_does_an_image_of_one_colour(self, name, strengths, tolerance):
    image = Image.new("RGB", (12, 10), (3, 9, 200))
    self.check(name, strengths, tolerance, image)


def pixels_of(image):
  pixels = np.asarray(image)
  return pixels if pixels.ndim == 3 else pixels[..., None]


@pytest.mark.parametrize(
  ("name", "strengths"),
  [
    ("rotate", [30, -17, 135, 90]),
    ("shear_x", [0.3, -0.11, 0.99]),
    ("shear_y", [0.3, -0.11, 0.99]),
    ("translate_x", [5, -32]),
    ("translate_y", [7, -10]),
  ],
)
class TestGeometry:
  def check(self, name, strengths, photo, interpolation, share_off):
    """Bounds how many of the pixels are more than a level off."""
    resample = Image.Resampling[interpolation.upper()]
    for strength in strengths:
      ours = changed(name, photo, strength, interpolation=interpolation)
      image = Image.fromarray(photo)
      reference = pillow_geometry(name, image, strength, resample)
      is_off = deviation(ours, reference) > ONE_LEVEL
      assert is_off.mean() <= share_off, strength

  def test_pixels_go_where_they_go_in_pillow(self, name, strengths, photo):
    # All but those that lie just between two others.
    self.check(name, strengths, photo, "nearest", 0.01)

  def test_so_they_do_in_between(self, name, strengths, photo):
    # At the edge, TensorFlow mixes in what is outside.
    self.check(name, strengths, photo, "bilinear", 0.025)


def test_images_of_a_batch_have_strengths_of_their_own(photo):
  images = tf.cast(tf.stack([photo, photo]), tf.float32)
  darker, same = colour.brightness(images, tf.constant([0.5, 1.0]))
  np.testing.assert_allclose(darker, photo / 2)
  np.testing.assert_array_equal(same, photo)


def test_grey_images_have_no_colours_to_change(photo):
  grey = photo[..., :1]
  np.testing.assert_allclose(changed("color", grey, 0.1), grey, atol=1e-4)
