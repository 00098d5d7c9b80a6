"""From the bytes of an image file to a crop of it, decoding no more than that.

    def decode(contents, seed):
      return tfecho.images.decode_and_random_crop(
        contents, (224, 224), seed=seed
      )

The window is chosen from the header, so that a JPEG decoder has to rebuild only
the part that is wanted, and only as finely as it will be shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfecho.checks import check_number, checked_int, checked_stateless_seed

# What a JPEG decoder can scale by at no cost, beginning with the smallest.
_SCALES = (1, 2, 4, 8)

# How far from its end a file is searched for the mark that it has one: some
# cameras write a few bytes behind it.
_TAIL_BYTES = 1024
_JPEG_END = (0xFF, 0xD9)
_PNG_END = tuple(b"IEND")
_PNG_START = b"\x89PNG"


def decode_and_random_crop(
  contents: tf.Tensor,
  size: int | Sequence[int],
  *,
  seed: tf.Tensor,
  area: Sequence[float] = (0.08, 1.0),
  aspect_ratio: Sequence[float] = (3 / 4, 4 / 3),
  channels: int = 3,
  file: Any = None,
) -> tf.Tensor:
  """Decodes a random window of an image, scaled to `size`.

  The window is that of Inception and of most training on ImageNet since. A JPEG
  is decoded at a half, a quarter or an eighth of its size where the window is
  still as large as `size` then.

  >>> png = tf.io.encode_png(tf.zeros([64, 48, 3], tf.uint8))
  >>> image = tfecho.images.decode_and_random_crop(png, 32, seed=(1, 2))
  >>> image.shape, image.dtype
  (TensorShape([32, 32, 3]), tf.uint8)

  Args:
    contents: scalar string, a JPEG or PNG file: colour, grey or CMYK.
    size: height and width of the result in pixels, or one number for both.
    seed: shape [2], two whole numbers; the same seed gives the same window.
    area: smallest and largest share of the image that the window covers.
    aspect_ratio: smallest and largest width of the window over its height.
      Where no such window is found in ten attempts, it is the whole image.
    channels: 3 for colour, 1 for grey, which can't be made of CMYK.
    file: where `contents` comes from, to be named in errors: a scalar string.

  Returns:
    uint8, shape [height, width, channels].

  Raises:
    ValueError: if an argument is not as described.
    tf.errors.InvalidArgumentError: for an element that is no image or is cut
      off, naming `file`. To skip it, filter by `is_complete` before.

  Reference:
    Szegedy et al., "Going Deeper with Convolutions", arXiv 1409.4842.
  """
  size = _checked_size(size)
  draw = _checked_draw(seed, area, aspect_ratio)
  contents = _checked_contents(contents, channels, file)
  return _decode(contents, draw, size, channels)


def random_crop(
  image: tf.Tensor,
  size: int | Sequence[int],
  *,
  seed: tf.Tensor,
  area: Sequence[float] = (0.08, 1.0),
  aspect_ratio: Sequence[float] = (3 / 4, 4 / 3),
) -> tf.Tensor:
  """Cuts a random window out of a decoded image, scaled to `size`.

  For behind an echo after decode, where each copy of an image is to get a
  window of its own. It is that of `decode_and_random_crop`, which is faster
  where an image is used once.

  >>> image = tf.zeros([64, 48, 3], tf.uint8)
  >>> tfecho.images.random_crop(image, 32, seed=(1, 2)).shape
  TensorShape([32, 32, 3])

  Args:
    image: uint8, shape [height, width, channels].
    size: as for `decode_and_random_crop`, and so are the others.
    seed: shape [2], two whole numbers.
    area: smallest and largest share of the image that the window covers.
    aspect_ratio: smallest and largest width of the window over its height.

  Returns:
    uint8, shape [height, width, channels], without antialiasing, as is
    customary.

  Raises:
    ValueError: if an argument is not as described.
  """
  size = _checked_size(size)
  draw = _checked_draw(seed, area, aspect_ratio)
  image = _checked_image(image)
  window = draw(tf.shape(image))
  crop = tf.image.crop_to_bounding_box(image, *tf.unstack(window))
  return _resize(crop, size)


def decode_and_center_crop(
  contents: tf.Tensor,
  size: int | Sequence[int],
  *,
  fraction: float = 0.875,
  channels: int = 3,
  file: Any = None,
) -> tf.Tensor:
  """Decodes the middle of an image, scaled to `size`, as for evaluation.

  >>> png = tf.io.encode_png(tf.zeros([64, 48, 3], tf.uint8))
  >>> tfecho.images.decode_and_center_crop(png, (32, 24)).shape
  TensorShape([32, 24, 3])

  Args:
    contents: scalar string, a JPEG or PNG file: colour, grey or CMYK.
    size: height and width of the result in pixels, or one number for both.
    fraction: the window is the largest one of the shape of `size`, times this.
      224 / 256, the default, is what ImageNet is evaluated with.
    channels: 3 for colour, 1 for grey, which can't be made of CMYK.
    file: where `contents` comes from, to be named in errors: a scalar string.

  Returns:
    uint8, shape [height, width, channels].

  Raises:
    ValueError: if an argument is not as described.
    tf.errors.InvalidArgumentError: as `decode_and_random_crop`.
  """
  height, width = _checked_size(size)
  check_number("fraction", fraction, above=0)
  if fraction > 1:
    raise ValueError(f"`fraction` must be in (0, 1], got {fraction!r}")
  contents = _checked_contents(contents, channels, file)
  wanted = tf.constant([height, width], tf.float32)

  def center(shape: tf.Tensor) -> tf.Tensor:
    whole = shape[:2]
    scale = fraction * tf.reduce_min(tf.cast(whole, tf.float32) / wanted)
    extent = tf.maximum(tf.cast(tf.round(wanted * scale), tf.int32), 1)
    return tf.concat([(whole - extent) // 2, extent], axis=0)

  return _decode(contents, center, (height, width), channels)


def is_complete(contents: tf.Tensor) -> tf.Tensor:
  """Tells whether the file of an image goes on to its end.

  For `Dataset.filter`, to leave out what a download cut off:

  >>> png = tf.io.encode_png(tf.zeros([64, 48, 3], tf.uint8))
  >>> files = tf.data.Dataset.from_tensors(png).repeat(3)
  >>> len(list(files.filter(tfecho.images.is_complete)))
  3
  >>> bool(tfecho.images.is_complete(tf.strings.substr(png, 0, 50)))
  False

  Args:
    contents: scalar string.

  Returns:
    Scalar bool: whether it begins as a JPEG or PNG file, and has the mark that
    ends one. What is damaged in between shows only when it is decoded.
  """
  # Most files have it at their end, and searching costs a tenth of a decoding.
  return tf.cond(
    tf.io.is_jpeg(contents) & (_last(contents, 2) == bytes(_JPEG_END)),
    lambda: tf.constant(True),
    lambda: _has_end(contents),
  )


def _has_end(contents: tf.Tensor) -> tf.Tensor:
  # Padded, since an empty string can't be decoded.
  tail = tf.strings.join([_last(contents, _TAIL_BYTES), "\0" * 4])
  tail = tf.io.decode_raw(tail, tf.uint8)
  return tf.where(
    _is_png(contents),
    _contains(tail, _PNG_END),
    tf.io.is_jpeg(contents) & _contains(tail, _JPEG_END),
  )


def _last(contents: tf.Tensor, count: int) -> tf.Tensor:
  """The end of a string; all of it, if it is shorter."""
  start = tf.maximum(tf.strings.length(contents) - count, 0)
  return tf.strings.substr(contents, start, count)


def _contains(values: tf.Tensor, pattern: Sequence[int]) -> tf.Tensor:
  end = tf.size(values) - len(pattern) + 1
  matches = [values[i : end + i] == byte for i, byte in enumerate(pattern)]
  return tf.reduce_any(tf.reduce_all(tf.stack(matches), axis=0))


def _is_png(contents: tf.Tensor) -> tf.Tensor:
  return tf.strings.substr(contents, 0, len(_PNG_START)) == _PNG_START


def _png_shape(contents: tf.Tensor) -> tf.Tensor:
  """Height, width and 3, as the header says; 3 is what windows are drawn with.
  """
  header = tf.strings.substr(contents, 16, 8)
  size = tf.io.decode_raw(header, tf.int32, little_endian=False)[::-1]
  return tf.concat([size, [3]], axis=0)


def _jpeg_shape(contents: tf.Tensor) -> tf.Tensor:
  return tf.concat([tf.io.extract_jpeg_shape(contents)[:2], [3]], axis=0)


def _decode(
  contents: tf.Tensor,
  choose: Callable[[tf.Tensor], tf.Tensor],
  size: tuple[int, int],
  channels: int,
) -> tf.Tensor:
  """Decodes the window that `choose` makes of the shape of an image."""
  image = tf.cond(
    _is_png(contents),
    lambda: _crop_png(contents, choose(_png_shape(contents)), channels),
    lambda: _crop_jpeg(contents, choose(_jpeg_shape(contents)), size, channels),
  )
  image.set_shape([None, None, channels])
  return _resize(image, size)


def _resize(image: tf.Tensor, size: tuple[int, int]) -> tf.Tensor:
  return tf.cast(tf.round(tf.image.resize(image, size)), tf.uint8)


def _crop_png(
  contents: tf.Tensor, window: tf.Tensor, channels: int
) -> tf.Tensor:
  return tf.image.crop_to_bounding_box(
    tf.io.decode_png(contents, channels), *tf.unstack(window)
  )


def _crop_jpeg(
  contents: tf.Tensor,
  window: tf.Tensor,
  size: tuple[int, int],
  channels: int,
) -> tf.Tensor:
  """Decodes a window at the largest scale at which it is as large as `size`."""

  def crop_at(scale: int) -> Any:
    return lambda: tf.raw_ops.DecodeAndCropJpeg(
      contents=contents,
      crop_window=window // scale,
      channels=channels,
      ratio=scale,
    )

  # What is lost by rounding down must not make the window too small.
  fits = [
    tf.reduce_all(window[2:] // scale >= tf.constant(size))
    for scale in _SCALES[1:]
  ]
  index = tf.reduce_sum(tf.cast(tf.stack(fits), tf.int32))
  return tf.switch_case(index, [crop_at(scale) for scale in _SCALES])


def _checked_size(size: Any) -> tuple[int, int]:
  try:
    sides = tuple(size)
  except TypeError:  # One number for both.
    sides = (size, size)
  if len(sides) != 2:
    raise ValueError(f"`size` must be a height and a width, got {size!r}")
  height, width = (checked_int("size", side, at_least=1) for side in sides)
  return height, width


def _checked_draw(
  seed: Any, area: Sequence[float], aspect_ratio: Sequence[float]
) -> Callable[[tf.Tensor], tf.Tensor]:
  """Returns a function from the shape of an image to a window in it."""
  seed = checked_stateless_seed(seed)
  area = _checked_range("area", area, at_most=1.0)
  aspect_ratio = _checked_range("aspect_ratio", aspect_ratio)

  def draw(shape: tf.Tensor) -> tf.Tensor:
    begin, extent, _ = tf.image.stateless_sample_distorted_bounding_box(
      shape,
      bounding_boxes=tf.zeros([1, 0, 4]),
      seed=seed,
      min_object_covered=0.0,
      aspect_ratio_range=aspect_ratio,
      area_range=area,
      max_attempts=10,
      use_image_if_no_bounding_boxes=True,
    )
    return tf.concat([begin[:2], extent[:2]], axis=0)

  return draw


def _checked_image(image: Any) -> tf.Tensor:
  image = tf.convert_to_tensor(image)
  if image.dtype != tf.uint8 or image.shape.rank not in (3, None):
    raise ValueError(
      "`image` must be uint8 of shape [height, width, channels], got"
      f" {image.dtype.name} of shape {image.shape}"
    )
  return image


def _checked_range(
  name: str, values: Sequence[float], at_most: float = float("inf")
) -> tuple[float, float]:
  try:
    low, high = values
  except (TypeError, ValueError) as error:
    raise ValueError(
      f"`{name}` must be two numbers, got {values!r}"
    ) from error
  check_number(name, low, above=0)
  check_number(name, high, above=0)
  if not low <= high <= at_most:
    limit = "" if at_most == float("inf") else f", at most {at_most}"
    raise ValueError(
      f"`{name}` must be two rising numbers above 0{limit}, got {values!r}"
    )
  return float(low), float(high)


def _checked_contents(
  contents: tf.Tensor, channels: int, file: Any
) -> tf.Tensor:
  if channels not in (1, 3):
    raise ValueError(f"`channels` must be 1 or 3, got {channels!r}")
  contents = tf.convert_to_tensor(contents)
  if contents.dtype != tf.string or contents.shape.rank not in (0, None):
    raise ValueError(
      f"`contents` must be a scalar string, got {contents.dtype.name} of shape"
      f" {contents.shape}"
    )
  where = "`file` was not given" if file is None else file
  check = tf.debugging.Assert(
    is_complete(contents),
    ["`contents` is no complete JPEG or PNG file:", where],
  )
  with tf.control_dependencies([check] if check is not None else []):
    return tf.identity(contents)
