"""Which object each default box stands for while the network is trained.

A default box stands for the object that it overlaps most, if that is more than
a half. And each object has the default box that overlaps it most, however
little that is; where two objects want the same one, the better one gets it.
"""

import tensorflow as tf

from experiments.workloads.ssd import objects as columns
from experiments.workloads.ssd.boxes import overlaps

_THRESHOLD = 0.5


def match(objects, defaults):
  """Returns the box and the class that each default box is to predict.

  Crowds are left out: no single box is right for them.

  Args:
    objects: Of shape [batch, rows, columns], as packed by `objects.pack`.
    defaults: The default boxes, of shape [boxes, 4].

  Returns:
    A pair of boxes, of shape [batch, boxes, 4], and classes, int32 of shape
    [batch, boxes]. Where the class is 0, for background, the box has no
    meaning.
  """
  single = (columns.classes(objects) > 0) & ~columns.crowd(objects)
  quality = _quality(columns.boxes(objects), single, defaults)
  best = tf.argmax(quality, axis=1)
  matched = tf.gather(objects, best, batch_dims=1)
  found = tf.reduce_max(quality, axis=1) > _THRESHOLD
  classes = tf.where(found, columns.classes(matched), 0.0)
  return columns.boxes(matched), tf.cast(classes, tf.int32)


def _quality(boxes, single, defaults):
  """Returns how well object and default box go together, [batch, rows, boxes].

  That is their overlap; beyond any overlap, 2 more, for the one default box
  that each object is sure to get; and -1 for rows without an object.
  """
  overlap = overlaps(boxes, defaults)
  own = tf.one_hot(tf.argmax(overlap, axis=2), len(defaults), on_value=2.0)
  return tf.where(single[..., tf.newaxis], overlap + own, -1.0)
