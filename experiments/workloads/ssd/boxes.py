"""Default boxes: where the network looks, at several scales.

```python
len(default_boxes(300, SSD300))  # 8732
```
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf


class Level(NamedTuple):
  """The default boxes of one feature map.

  Attributes:
    positions: Height and width of the feature map.
    step: Distance of two positions, in pixels of the image.
    size: Height and width of the smallest square, in pixels.
    next_size: That of the next level; another square is between the two.
    ratios: Of width and height of the oblong boxes, which have the area of the
      smallest square. Each box comes upright, too.
  """

  positions: int
  step: float
  size: float
  next_size: float
  ratios: tuple[float, ...]

  @property
  def shapes(self):
    """Height and width of each of the boxes at a position, in pixels."""
    between = np.sqrt(self.size * self.next_size)
    shapes = [(self.size, self.size), (between, between)]
    for ratio in np.sqrt(self.ratios):
      wide = self.size / ratio, self.size * ratio
      shapes += [wide, wide[::-1]]
    return shapes


SSD300 = (
  Level(38, 8, 21, 45, (2,)),
  Level(19, 16, 45, 99, (2, 3)),
  Level(10, 32, 99, 153, (2, 3)),
  Level(5, 64, 153, 207, (2, 3)),
  Level(3, 100, 207, 261, (2,)),
  Level(1, 300, 261, 315, (2,)),
)


def default_boxes(image_size, levels):
  """Returns the default boxes, in the order of the outputs of the network.

  Args:
    image_size: Height and width of an image, in pixels.
    levels: A `Level` for each feature map.

  Returns:
    A float32 array of shape [boxes, 4]: level by level, row by row, position by
    position. What would be outside of the image is cut off.
  """
  boxes = np.concatenate([_boxes(level) for level in levels])
  return np.clip(boxes / image_size, 0, 1).astype(np.float32)


def _boxes(level):
  centers = (np.arange(level.positions) + 0.5) * level.step
  grid = np.stack(np.meshgrid(centers, centers, indexing="ij"), axis=-1)
  halves = np.array(level.shapes) / 2
  lower = grid[:, :, np.newaxis] - halves
  upper = grid[:, :, np.newaxis] + halves
  return np.concatenate([lower, upper], axis=-1).reshape(-1, 4)


def areas(boxes):
  """Returns the areas of boxes, of shape [...] for boxes of shape [..., 4]."""
  top, left, bottom, right = tf.unstack(boxes, axis=-1)
  return (bottom - top) * (right - left)


def overlaps(boxes, others):
  """Returns how much each box has in common with each of some others.

  Args:
    boxes: Of shape [..., n, 4].
    others: Of shape [m, 4].

  Returns:
    A tensor of shape [..., n, m]: the area of the intersection by that of the
    union, also known as the Jaccard index; 0 for boxes without an area.
  """
  a = boxes[..., :, tf.newaxis, :]
  lower = tf.maximum(a[..., :2], others[..., :2])
  upper = tf.minimum(a[..., 2:], others[..., 2:])
  sides = tf.maximum(upper - lower, 0)
  common = sides[..., 0] * sides[..., 1]
  union = areas(boxes)[..., tf.newaxis] + areas(others) - common
  return tf.math.divide_no_nan(common, union)
