"""Scenes: handwritten digits on parts of photographs, as JPEG files.

```python
scenes = train()        # of 1,500 scenes; `validation()` has 300 other ones
scenes.files[0]         # JPEG, 96x96 pixels
scenes.boxes[0]         # top, left, bottom, right, as parts of the image
scenes.labels[0]        # the digits
```

Digits and photographs are those that scikit-learn ships. The boxes are exact:
the outermost ink of a digit lies on their edges. Other digits, and the other
side of the photographs, are for validation.
"""

import functools
from typing import NamedTuple

import numpy as np
import PIL.Image
from sklearn import datasets

from experiments.data import digits, jpegs

CLASSES = digits.CLASSES
SIZE = 96  # height and width of a scene, in pixels
TRAIN_EXAMPLES = 1_500
VALIDATION_EXAMPLES = 300
MOST_DIGITS = 4

_TRAIN_SEED, _VALIDATION_SEED = 1, 2

# The part of a photograph's width that is for training, from the left.
_TRAIN_PART = 0.6

_HEIGHTS = (24, 60)  # of digits, in pixels
_BACKDROPS = (96, 250)  # of a photograph, in pixels
_GAP = 2  # pixels between two digits, at least
_TRIES = 20  # to find a place for a digit


class Scenes(NamedTuple):
  """Scenes, each with one digit at least.

  Attributes:
    files: Array of `bytes`, of shape [count].
    boxes: For each scene a float32 array of shape [digits, 4].
    labels: For each scene an int64 array of shape [digits].
  """

  files: np.ndarray
  boxes: list
  labels: list


@functools.cache
def train():
  """Returns the 1,500 training `Scenes`, always the same ones."""
  parts = [photo[:, : _border(photo)] for photo in _photographs()]
  return _scenes(parts, digits.train(), TRAIN_EXAMPLES, _TRAIN_SEED)


@functools.cache
def validation():
  """Returns the 300 `Scenes` for validation, always the same ones."""
  parts = [photo[:, _border(photo) :] for photo in _photographs()]
  return _scenes(
    parts, digits.validation(), VALIDATION_EXAMPLES, _VALIDATION_SEED
  )


def _photographs():
  return datasets.load_sample_images().images


def _border(photo):
  return int(_TRAIN_PART * photo.shape[1])


def _scenes(photos, examples, count, seed):
  rng = np.random.RandomState(seed)
  scenes = [_scene(photos, examples, rng) for _ in range(count)]
  images, boxes, labels = zip(*scenes)
  return Scenes(jpegs.files(np.stack(images)), list(boxes), list(labels))


def _scene(photos, examples, rng):
  """Returns an image, and the boxes and labels of what is in it."""
  scene = _backdrop(photos[rng.randint(len(photos))], rng)
  boxes, labels = [], []
  for _ in range(rng.randint(1, MOST_DIGITS + 1)):
    index = rng.randint(len(examples[0]))
    ink = _ink(examples[0][index, :, :, 0], rng.randint(*_HEIGHTS))
    box = _place(ink.shape, boxes, rng)
    if box is not None:
      _draw(scene, ink, box, rng)
      boxes.append(box)
      labels.append(examples[1][index])
  return (
    np.round(scene).astype(np.uint8),
    np.array(boxes, np.float32) / SIZE,
    np.array(labels, np.int64),
  )


def _backdrop(photo, rng):
  """Returns a square of a photograph, in the size of a scene."""
  side = rng.randint(*_BACKDROPS)
  top = rng.randint(photo.shape[0] - side + 1)
  left = rng.randint(photo.shape[1] - side + 1)
  square = photo[top : top + side, left : left + side]
  return _resize(square, (SIZE, SIZE)).astype(np.float32)


def _ink(digit, height):
  """Returns how dark a digit is, from 0 to 1, cut to its ink and enlarged."""
  rows, columns = (np.flatnonzero(digit.any(axis=axis)) for axis in (1, 0))
  digit = digit[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
  width = max(round(height * digit.shape[1] / digit.shape[0]), 1)
  pixels = digit * (255 / digits.MAX_PIXEL)
  # A pixel of the edge is at least as dark as that of the digit in its corner.
  return _resize(pixels.astype(np.uint8), (width, height)) / 255


def _place(shape, boxes, rng):
  """Returns a box that is clear of others, or None if none was found."""
  height, width = shape
  if width > SIZE:
    return None
  for _ in range(_TRIES):
    top = rng.randint(SIZE - height + 1)
    left = rng.randint(SIZE - width + 1)
    box = (top, left, top + height, left + width)
    if all(_apart(box, other) for other in boxes):
      return box
  return None


def _apart(box, other):
  return (
    box[0] >= other[2] + _GAP
    or box[1] >= other[3] + _GAP
    or other[0] >= box[2] + _GAP
    or other[1] >= box[3] + _GAP
  )


def _draw(scene, ink, box, rng):
  """Draws a digit, in a colour as unlike what is behind it as there is."""
  top, left, bottom, right = box
  behind = scene[top:bottom, left:right]
  shade = rng.uniform(0, 60, 3)
  colour = 255 - shade if behind.mean() < 128 else shade
  behind += ink[..., np.newaxis] * (colour - behind)


def _resize(image, size):
  pillow = PIL.Image.fromarray(image)
  return np.asarray(pillow.resize(size, PIL.Image.Resampling.BILINEAR))
