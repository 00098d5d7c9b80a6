"""What it costs to get a random crop out of the bytes of a JPEG.

    python -m experiments.benchmark --suite=decode

Windows of 8 to 100 % of a photograph, the usual ones for ImageNet, scaled to
224x224, in milliseconds per image on one thread. The photograph is one that
scikit-learn ships, at the size of most of ImageNet and at that of the pictures
in it that cameras made.

Pillow crops beside, and so does Pillow-SIMD, which can't be installed where
Pillow is, if the environment variable `PILLOW_SIMD` names its folder:

    pip install --no-binary=:all: --target=/tmp/simd pillow-simd
    PILLOW_SIMD=/tmp/simd python -m experiments.benchmark --suite=decode
"""

import functools
import io
import os
import pathlib

import sklearn.datasets
import tensorflow as tf
from PIL import Image

import tfecho
from experiments.benchmark import drive, pillow_crop
from experiments.benchmark.runner import Bound, Case

CROP_SIZE = (224, 224)
# Width and height in pixels, and the bound. A small image saves little: what is
# compressed has to be read up to the lower edge of the window, which is half of
# the work, and no window is large enough to be decoded at half its size.
PHOTOS = {(500, 375): 1.0, (1_024, 768): 1 / 1.3, (1_500, 1_125): 1 / 1.3}
_JPEG_QUALITY = 90
_WINDOWS = 200
_STRIDE = 50


def cases():
  """A case per size of the photograph."""
  return [_case(size, bound) for size, bound in PHOTOS.items()]


def _case(size, bound):
  contents = _photo(size)
  ours, whole = "decode_and_random_crop", "decode, then crop"
  pillows = _pillows()
  return Case(
    what=f"JPEG of {size[0]}x{size[1]}, window of 8-100 %",
    unit="ms",
    contenders={
      ours: functools.partial(_start, tfecho_crop, contents),
      whole: functools.partial(_start, decode_then_crop, contents),
      **{
        name: functools.partial(_start_pillow, contents, path)
        for name, path in pillows.items()
      },
    },
    bounds=[
      Bound(ours, whole, bound),
      *(Bound(ours, name) for name in pillows),
    ],
  )


def _pillows():
  """Folders to import them from, by name; None for the one installed."""
  simd = os.environ.get("PILLOW_SIMD")
  return {"Pillow": None, **({"Pillow-SIMD": simd} if simd else {})}


def tfecho_crop(contents, seed):
  """The crop that is measured."""
  return tfecho.images.decode_and_random_crop(contents, CROP_SIZE, seed=seed)


def decode_then_crop(contents, seed):
  """The same window, cut out of the whole image."""
  image = tf.io.decode_jpeg(contents, channels=3)
  begin, extent = _window(tf.shape(image), seed)
  crop = tf.image.resize(tf.slice(image, begin, extent), CROP_SIZE)
  return tf.cast(tf.round(crop), tf.uint8)


def _window(shape, seed):
  begin, extent, _ = tf.image.stateless_sample_distorted_bounding_box(
    shape,
    bounding_boxes=tf.zeros([1, 0, 4]),
    seed=seed,
    min_object_covered=0.0,
    aspect_ratio_range=(3 / 4, 4 / 3),
    area_range=(0.08, 1.0),
    max_attempts=10,
    use_image_if_no_bounding_boxes=True,
  )
  return begin, extent


def _start(crop, contents):
  # As elements: of a constant, TensorFlow would decode the whole once for all.
  files = tf.data.Dataset.from_tensors(contents).repeat(_WINDOWS)
  dataset = files.enumerate().repeat().map(
    lambda n, contents: crop(contents, tf.stack([n, n]))
  )
  cost = drive.cost_of(dataset, stride=_STRIDE, min_seconds=0.5)
  return lambda: cost() / 1e3


def _start_pillow(contents, path):
  return pillow_crop.start(
    contents, _windows(contents), CROP_SIZE, at_a_time=_STRIDE, path=path
  )


def _windows(contents):
  """The windows of the others, as left, upper, right and lower edge."""
  shape = tf.io.extract_jpeg_shape(contents)
  windows = []
  for n in range(_WINDOWS):
    begin, extent = _window(shape, (n, n))
    top, left, _ = begin.numpy().tolist()
    height, width, _ = extent.numpy().tolist()
    windows.append((left, top, left + width, top + height))
  return windows


def _photo(size):
  path = pathlib.Path(sklearn.datasets.__file__).with_name("images")
  buffer = io.BytesIO()
  photo = Image.open(path / "china.jpg").resize(size, Image.Resampling.LANCZOS)
  photo.save(buffer, "JPEG", quality=_JPEG_QUALITY)
  return buffer.getvalue()
