"""Detectors that see what they are told to."""

import numpy as np
import tensorflow as tf

from experiments.workloads.ssd.encoding import encode
from experiments.workloads.ssd.matching import match

CERTAIN = 20.0  # a logit, where the others are 0


def outputs(objects, defaults, classes):
  """Returns the outputs of a detector that finds all of some objects.

  Args:
    objects: Of shape [batch, rows, columns], as packed.
    defaults: The default boxes.
    classes: Number of classes, without the background.
  """
  boxes, found = match(tf.constant(objects), defaults)
  logits = CERTAIN * tf.one_hot(found, 1 + classes)
  offsets = tf.where(found[..., tf.newaxis] > 0, encode(boxes, defaults), 0.0)
  return tf.concat([offsets, logits], axis=-1).numpy()


def random_boxes(rng, count, least_side=0.05):
  """Returns boxes that lie anywhere in an image."""
  sides = rng.uniform(least_side, 0.6, (count, 2))
  start = rng.uniform(size=(count, 2)) * (1 - sides)
  return np.concatenate([start, start + sides], axis=1).astype(np.float32)


def random_objects(rng, rows, classes):
  """Returns objects of an image, with empty rows and crowds among them."""
  numbers = rng.randint(0, classes + 1, rows)
  boxes = random_boxes(rng, rows) * (numbers > 0)[:, np.newaxis]
  crowds = (rng.uniform(size=rows) < 0.2) & (numbers > 0)
  columns = boxes, numbers[:, np.newaxis], crowds[:, np.newaxis]
  return np.concatenate(columns, axis=1).astype(np.float32)


def overlap(a, b):
  """Returns the intersection by the union of two boxes, in plain Python."""
  height = min(a[2], b[2]) - max(a[0], b[0])
  width = min(a[3], b[3]) - max(a[1], b[1])
  if height <= 0 or width <= 0:
    return 0.0
  common = height * width
  areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
  return common / (sum(areas) - common)
