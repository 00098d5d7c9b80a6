import io
import pathlib

import numpy as np
import pytest
import sklearn.datasets
import tensorflow as tf
from PIL import Image

import tfecho
from tfecho import images

PHOTO = pathlib.Path(
  sklearn.datasets.__file__, "..", "images", "china.jpg"
).resolve()
HEIGHT, WIDTH = 427, 640


@pytest.fixture(scope="module")
def photo():
  return PHOTO.read_bytes()


def encode(pixels, file_format, mode="RGB", **options):
  buffer = io.BytesIO()
  image = Image.fromarray(np.asarray(pixels)).convert(mode)
  image.save(buffer, file_format, **options)
  return buffer.getvalue()


def pixels_of(contents):
  return np.asarray(Image.open(io.BytesIO(contents)).convert("RGB"))


def coordinates_png(height=200, width=250):
  """An image whose pixels are their own row and column."""
  rows, columns = np.mgrid[:height, :width]
  blue = np.zeros_like(rows)
  return encode(np.stack([rows, columns, blue], -1).astype(np.uint8), "PNG")


def window_of(crop):
  """Height and width of the window of `coordinates_png` that a crop shows.

  A resized image begins and ends half a step from the edges of its window.
  """
  crop = crop.numpy().astype(float)
  rows, columns = crop[:, 0, 0], crop[0, :, 1]
  return tuple(
    (line[-1] - line[0]) * len(line) / (len(line) - 1)
    for line in (rows, columns)
  )


class TestCenterCrop:
  def test_a_png_is_cropped_in_the_middle_and_resized(self):
    crop = images.decode_and_center_crop(
      coordinates_png(200, 250), (100, 50), fraction=0.5
    )
    middle = pixels_of(coordinates_png(200, 250))[50:150, 100:150]
    np.testing.assert_array_equal(crop, middle)

  def test_a_jpeg_gives_the_pixels_that_decoding_it_whole_gives(self, photo):
    crop = images.decode_and_center_crop(photo, 400, fraction=400 / HEIGHT)
    whole = tf.io.decode_jpeg(photo, channels=3)
    np.testing.assert_array_equal(crop, whole[13:413, 120:520])

  @pytest.mark.parametrize("size", [200, 100, 50, 25])
  def test_at_a_smaller_scale_it_is_truer_than_resizing(self, photo, size):
    crop = images.decode_and_center_crop(photo, size, fraction=1.0)
    left = (WIDTH - HEIGHT) // 2
    square = tf.io.decode_jpeg(photo, channels=3)[:, left : left + HEIGHT]
    exact = tf.image.resize(square, (size, size), antialias=True).numpy()
    customary = tf.image.resize(square, (size, size)).numpy()
    error = np.abs(crop.numpy().astype(float) - exact).mean()
    assert error < 0.9 * np.abs(customary - exact).mean()

  def test_the_whole_of_a_tall_image_is_as_wide_as_it_can_be(self):
    crop = images.decode_and_center_crop(
      coordinates_png(200, 100), 50, fraction=1.0
    )
    assert window_of(crop) == pytest.approx((100, 100), abs=3)


class TestRandomCrop:
  def test_the_same_seed_gives_the_same_window(self, photo):
    crops = [
      images.decode_and_random_crop(photo, 64, seed=(1, n)) for n in (2, 2, 3)
    ]
    np.testing.assert_array_equal(crops[0], crops[1])
    assert np.any(crops[0] != crops[2])

  def test_windows_have_the_area_and_the_aspect_ratio_asked_for(self):
    png = coordinates_png(200, 250)
    areas, ratios = [], []
    for n in range(200):
      crop = images.decode_and_random_crop(
        png, 100, seed=(0, n), area=(0.2, 0.6), aspect_ratio=(0.5, 2.0)
      )
      height, width = window_of(crop)
      areas.append(height * width / (200 * 250))
      ratios.append(width / height)
    assert 0.18 < min(areas) < 0.25 and 0.5 < max(areas) < 0.63
    assert 0.45 < min(ratios) < 0.7 and 1.5 < max(ratios) < 2.1

  def test_a_jpeg_and_a_png_of_the_same_image_look_the_same(self, photo):
    png = encode(pixels_of(photo), "PNG")
    for n in range(10):
      one, two = (
        images.decode_and_random_crop(contents, 224, seed=(0, n))
        for contents in (photo, png)
      )
      error = np.abs(one.numpy().astype(float) - two.numpy()).mean()
      assert error < 6

  def test_in_a_pipeline_the_shape_is_known_and_seeds_are_its_own(self, photo):
    pipeline = tfecho.Pipeline(
      tf.data.Dataset.from_tensors(photo).repeat(8),
      read=lambda contents: contents,
      augment=lambda contents, seed: images.decode_and_random_crop(
        contents, (32, 48), seed=seed
      ),
      batch_size=4,
    )
    dataset = pipeline.dataset(echo_after="read", factor=2)
    assert dataset.element_spec.shape.as_list()[1:] == [32, 48, 3]
    batch = next(iter(dataset)).numpy()
    assert len(np.unique(batch.reshape(4, -1), axis=0)) == 4


class TestRandomCropOfADecodedImage:
  @pytest.mark.parametrize("seed", range(5))
  def test_it_is_the_crop_that_its_file_would_give(self, seed):
    png = coordinates_png()
    options = {"seed": (0, seed), "area": (0.1, 0.5)}
    np.testing.assert_array_equal(
      images.random_crop(tf.io.decode_png(png), (32, 48), **options),
      images.decode_and_random_crop(png, (32, 48), **options),
    )

  def test_each_copy_behind_an_echo_has_a_window_of_its_own(self, photo):
    pipeline = tfecho.Pipeline(
      tf.data.Dataset.from_tensors(photo),
      decode=lambda contents: tf.io.decode_jpeg(contents, channels=3),
      augment=lambda image, seed: images.random_crop(image, 32, seed=seed),
      batch_size=4,
    )
    dataset = pipeline.dataset(echo_after="decode", factor=4, echo_buffer=0)
    assert dataset.element_spec.shape.as_list()[1:] == [32, 32, 3]
    batch = next(iter(dataset)).numpy()
    assert len(np.unique(batch.reshape(4, -1), axis=0)) == 4


class TestKindsOfFiles:
  @pytest.mark.parametrize(
    "mode, channels",
    [("RGB", 3), ("RGB", 1), ("L", 3), ("L", 1), ("CMYK", 3)],
  )
  @pytest.mark.parametrize("options", [{}, {"progressive": True}])
  def test_jpegs_of_every_kind_are_read(self, photo, mode, options, channels):
    contents = encode(pixels_of(photo), "JPEG", mode, **options)
    crop = images.decode_and_center_crop(contents, 200, channels=channels)
    expected = pixels_of(photo)
    if mode == "L" or channels == 1:
      expected = np.asarray(Image.fromarray(expected).convert("L"))[..., None]
    assert crop.shape == (200, 200, channels)
    assert abs(crop.numpy().mean() - expected.mean()) < 12

  @pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P", "1"])
  @pytest.mark.parametrize("channels", [1, 3])
  def test_pngs_of_every_kind_are_read(self, photo, mode, channels):
    contents = encode(pixels_of(photo), "PNG", mode)
    crop = images.decode_and_random_crop(
      contents, 30, seed=(0, 0), channels=channels
    )
    assert crop.shape == (30, 30, channels) and crop.dtype == tf.uint8

  def test_an_image_smaller_than_its_crop_is_enlarged(self):
    crop = images.decode_and_random_crop(
      coordinates_png(3, 2), 64, seed=(0, 0)
    )
    assert crop.shape == (64, 64, 3)


class TestDamagedFiles:
  @pytest.fixture(params=["JPEG", "PNG"])
  def contents(self, request, photo):
    return encode(pixels_of(photo), request.param)

  @pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.999])
  def test_a_file_that_was_cut_off_is_an_error_that_names_it(
    self, contents, share
  ):
    cut = contents[: int(share * len(contents))]
    # At the top, where a decoder would not notice what is missing below.
    with pytest.raises(tf.errors.InvalidArgumentError, match="photos/7.jpg"):
      images.decode_and_random_crop(
        cut, 20, seed=(0, 0), area=(0.01, 0.02), file="photos/7.jpg"
      )

  def test_it_can_be_skipped(self, contents):
    files = [contents, contents[:1_000], contents, b"", b"text"]
    dataset = (
      tf.data.Dataset.from_tensor_slices(files)
      .filter(images.is_complete)
      .map(lambda file: images.decode_and_center_crop(file, 20))
    )
    assert len(list(dataset)) == 2

  def test_bytes_behind_the_end_do_no_harm(self, contents):
    images.decode_and_center_crop(contents + b"\0" * 500, 20)


@pytest.mark.parametrize(
  "size",
  [np.int64(8), [8, np.int32(8)], np.array([8, 8]), tf.TensorShape([8, 8])],
)
def test_a_size_may_be_of_any_whole_numbers(size):
  image = np.zeros([16, 16, 3], np.uint8)
  assert images.random_crop(image, size, seed=(0, 0)).shape == [8, 8, 3]


class TestBadArguments:
  @pytest.mark.parametrize(
    "arguments, message",
    [
      ({"size": 0}, "`size` must be an int of at least 1, got 0"),
      ({"size": (1, 2, 3)}, r"`size` must be a height and a width, got \(1"),
      ({"size": 32.0}, "`size` must be an int of at least 1, got 32.0"),
      ({"size": (8, 8.5)}, "`size` must be an int of at least 1, got 8.5"),
      ({"size": None}, "`size` must be an int of at least 1, got None"),
      ({"area": 0.5}, "`area` must be two numbers, got 0.5"),
      ({"area": (0.1, 0.5, 1)}, r"`area` must be two numbers, got \(0.1, 0.5,"),
      ({"area": (0.5, "x")}, "`area` must be a finite number above 0, got 'x'"),
      ({"area": (0.5, 0.1)}, r"`area` must be two rising numbers.*\(0.5, 0.1"),
      ({"area": (0.5, 1.5)}, r"`area` .* at most 1.0, got \(0.5, 1.5"),
      ({"aspect_ratio": (0, 1)}, "`aspect_ratio` .* above 0, got 0"),
      ({"seed": 1}, r"`seed` must be two whole numbers, got int32 of shape"),
      ({"seed": (0.5, 1.0)}, "`seed` must be two whole numbers, got float32"),
      ({"channels": 4}, "`channels` must be 1 or 3, got 4"),
      ({"contents": [b"a", b"b"]}, r"`contents` .* got string of shape \(2,\)"),
      ({"contents": 3.0}, "`contents` .* got float32"),
    ],
  )
  def test_they_are_refused_by_name_and_value(self, arguments, message, photo):
    arguments = {"contents": photo, "size": 8, "seed": (0, 0), **arguments}
    with pytest.raises(ValueError, match=message):
      images.decode_and_random_crop(**arguments)

  @pytest.mark.parametrize(
    "image", [np.zeros([2, 2, 3]), np.zeros([2, 2], np.uint8)]
  )
  def test_so_is_what_is_no_decoded_image(self, image):
    with pytest.raises(ValueError, match=f"`image` .* got {image.dtype} of"):
      images.random_crop(image, 8, seed=(0, 0))

  @pytest.mark.parametrize("fraction", [0, 1.1, -1, "x", None])
  def test_so_is_a_fraction(self, photo, fraction):
    with pytest.raises(ValueError, match=f"`fraction` .* got {fraction!r}"):
      images.decode_and_center_crop(photo, 8, fraction=fraction)
