"""What is in an image, as one array with a row for each object.

```python
objects = pack([[0.1, 0.2, 0.6, 0.5]], classes=[7], crowd=[False], rows=100)
boxes(objects), classes(objects)  # of shapes [100, 4] and [100]
```

A row is top, left, bottom, right, class and whether it is a crowd. Classes
start at 1, and a row of class 0 holds nothing: so all images of a data set have
arrays of one shape, and can be batched. The functions below take arrays of
NumPy as well as tensors, batched or not.
"""

import numpy as np
import tensorflow as tf

COLUMNS = 6


def pack(boxes, classes, crowd, *, rows):
  """Returns the array of an image.

  Args:
    boxes: Of shape [count, 4].
    classes: Of shape [count], from 1.
    crowd: Of shape [count]: whether the box is around several objects that
      were not told apart. Finding them counts neither for nor against.
    rows: Number of rows of the array. Objects beyond it are left out.

  Returns:
    A float32 tensor of shape [rows, COLUMNS].
  """
  packed = _join(boxes, classes, crowd)[:rows]
  padded = tf.pad(packed, [[0, rows - tf.shape(packed)[0]], [0, 0]])
  return tf.ensure_shape(padded, [rows, COLUMNS])


def pack_all(boxes, classes, *, rows):
  """Returns the arrays of several images without crowds.

  Args:
    boxes: For each image an array of shape [count, 4].
    classes: For each image an array of shape [count], from 1.
    rows: As for `pack`.

  Returns:
    A float32 tensor of shape [images, rows, COLUMNS].
  """
  counts = [len(image) for image in classes]
  classes = np.concatenate(classes)
  packed = _join(np.concatenate(boxes), classes, np.zeros_like(classes))
  ragged = tf.RaggedTensor.from_row_lengths(packed, counts)
  return ragged.to_tensor(shape=[len(counts), rows, COLUMNS])


def boxes(objects):
  """Returns the boxes, of shape [..., rows, 4]."""
  return objects[..., :4]


def classes(objects):
  """Returns the classes, of shape [..., rows]; 0 where there is no object."""
  return objects[..., 4]


def crowd(objects):
  """Returns whether each row is a crowd, of shape [..., rows]."""
  return objects[..., 5] > 0


def with_boxes(objects, new_boxes, kept):
  """Returns the objects with other boxes.

  Args:
    objects: Of shape [rows, COLUMNS].
    new_boxes: Of shape [rows, 4].
    kept: Which of the rows are kept; the others are emptied.
  """
  moved = tf.concat([new_boxes, objects[..., 4:]], axis=-1)
  return tf.where(kept[..., tf.newaxis], moved, tf.zeros_like(moved))


def _join(boxes, classes, crowd):
  columns = boxes, _column(classes), _column(crowd)
  return tf.concat([tf.cast(x, tf.float32) for x in columns], axis=1)


def _column(values):
  return tf.convert_to_tensor(values)[:, tf.newaxis]
