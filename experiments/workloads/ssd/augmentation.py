"""Images of a detector, made the size it takes, and augmented boxes and all.

What is shown of an image is a window: a box in its coordinates, which reaches
beyond the image where that is expanded. So an image is resampled only once.

    expand   half of the time the image lies on a larger grey canvas
    crop     a part of that, which overlaps one of the objects enough
    mirror   half of the time
    recolour brightness, contrast, saturation and hue

Objects stay if their center is in the window, with their boxes cut to it. This
is section 2.2 of the paper, with all of the recolouring in one order.
"""

import tensorflow as tf

from experiments.workloads.ssd import objects as columns
from experiments.workloads.ssd import windows
from experiments.workloads.ssd.boxes import overlaps

# A crop has at least one of these overlaps with an object; 0 is for any crop.
_LEAST_OVERLAPS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)
# In one case of seven, beside those, the image is not cropped.
_CANDIDATES = 50
_MOST_OBLONG = 2.0

_BRIGHTNESS = 0.125
_CONTRAST = _SATURATION = 0.5
_HUE = 0.05


def resized(size):
  """Returns what makes images of one size: `(image, objects)` to the same.

  Args:
    size: Height and width of the new image, in pixels.
  """

  def resize(image, objects):
    return windows.resample(image, windows.WHOLE, size), objects

  return resize


def augmentation(size, *, expansion=4.0, least_side=0.3, mirror=True):
  """Returns an `augment`, as a `Workload` has it.

  Args:
    size: Height and width of the new image, in pixels.
    expansion: Height and width of the largest canvas, of those of the image.
    least_side: The same for the smallest crop, of those of the canvas.
    mirror: Whether to mirror images.
  """

  def augment(image, objects, seed):
    seeds = tf.unstack(tf.random.split(seed, 4), num=4)
    canvas = _expand(expansion, seeds[0])
    boxes = _present(windows.within(columns.boxes(objects), canvas), objects)
    crop = crop_window(boxes, least_side, seeds[1])
    window = windows.outward(crop, canvas)
    image = windows.resample(image, window, size)
    objects = windows.show(objects, window)
    if mirror:
      image, objects = _maybe_mirror(image, objects, seeds[2])
    return _recolour(image, seeds[3]), objects

  return augment


def crop_window(boxes, least_side, seed):
  """Returns a box to crop to.

  Windows are tried until one has the center of an object in it and overlaps
  one of them as much as was drawn; after some it is left at the whole.

  Args:
    boxes: Of the objects, of shape [count, 4].
    least_side: Of the window.
    seed: int64 of shape [2].
  """
  crop_seed, choice_seed = tf.unstack(tf.random.split(seed), num=2)
  crops = _random_crops(least_side, crop_seed)
  choice = tf.random.stateless_uniform(
    [], choice_seed, 0, len(_LEAST_OVERLAPS) + 1, tf.int32
  )
  # 2 is more than any overlap.
  least = tf.gather((*_LEAST_OVERLAPS, 2.0), choice)
  close = tf.reduce_any(overlaps(crops, boxes) >= least, axis=1)
  # The whole is what is left if none will do.
  fits = tf.concat([_fits(crops, boxes) & close, [True]], axis=0)
  crops = tf.concat([crops, [windows.WHOLE]], axis=0)
  return tf.gather(crops, tf.argmax(tf.cast(fits, tf.int32)))


def _random_crops(least_side, seed):
  side_seed, start_seed = tf.unstack(tf.random.split(seed), num=2)
  shape = [_CANDIDATES, 2]
  sides = tf.random.stateless_uniform(shape, side_seed, least_side, 1)
  start = tf.random.stateless_uniform(shape, start_seed) * (1 - sides)
  return tf.concat([start, start + sides], axis=1)


def _fits(crops, boxes):
  """Returns which crops are not too oblong and hold the center of a box."""
  sides = crops[:, 2:] - crops[:, :2]
  ratios = sides[:, 0] / sides[:, 1]
  oblong = (ratios > _MOST_OBLONG) | (ratios < 1 / _MOST_OBLONG)
  centers = windows.has_center(boxes, crops[:, tf.newaxis])
  return tf.reduce_any(centers, axis=1) & ~oblong


def _present(boxes, objects):
  return tf.boolean_mask(boxes, columns.classes(objects) > 0)


def _expand(expansion, seed):
  """Returns the canvas, as a window."""
  coin, side, start = tf.unstack(tf.random.stateless_uniform([3, 2], seed))
  ratio = 1 + (expansion - 1) * side[:1]
  canvas = tf.concat([start * (1 - ratio)] * 2, axis=0)
  canvas += tf.concat([[0.0, 0.0], ratio, ratio], axis=0)
  return tf.where(coin[0] < 0.5, canvas, windows.WHOLE)


def _maybe_mirror(image, objects, seed):
  mirrored = tf.random.stateless_uniform([], seed) < 0.5
  top, left, bottom, right = tf.unstack(columns.boxes(objects), axis=-1)
  boxes = tf.stack([top, 1 - right, bottom, 1 - left], axis=-1)
  others = columns.with_boxes(objects, boxes, columns.classes(objects) > 0)
  return (
    tf.where(mirrored, tf.reverse(image, [1]), image),
    tf.where(mirrored, others, objects),
  )


def _recolour(image, seed):
  seeds = tf.unstack(tf.random.split(seed, 4), num=4)
  image = tf.cast(image, tf.float32) / 255
  image = tf.image.stateless_random_brightness(image, _BRIGHTNESS, seeds[0])
  image = tf.image.stateless_random_contrast(
    image, 1 - _CONTRAST, 1 + _CONTRAST, seeds[1]
  )
  image = tf.clip_by_value(image, 0, 1)
  image = tf.image.stateless_random_saturation(
    image, 1 - _SATURATION, 1 + _SATURATION, seeds[2]
  )
  image = tf.image.stateless_random_hue(image, _HUE, seeds[3])
  return windows.to_uint8(image * 255)
