"""Files of numbers, and how often each number is decoded.

  decoding = Decoding()
  names = write_records(folder, [[1, 2], [3]])
  dataset = tf.data.TFRecordDataset(names).map(decoding.decode)
  values(dataset), decoding.counts
"""

import collections
import pathlib

import numpy as np
import tensorflow as tf


def write_records(folder, files):
  """Writes a file of records for each list of numbers; returns their names."""
  names = []
  for i, numbers in enumerate(files):
    names.append(str(pathlib.Path(folder, f"{i}.tfrecord")))
    with tf.io.TFRecordWriter(names[-1]) as writer:
      for number in numbers:
        writer.write(str(number).encode())
  return names


def write_texts(folder, numbers):
  """Writes a file for each number; returns their names."""
  paths = [pathlib.Path(folder, f"{number}.txt") for number in numbers]
  for path, number in zip(paths, numbers):
    path.write_text(str(number))
  return [str(path) for path in paths]


class Decoding:
  """Decodes numbers, and counts how often.

  Attributes:
    counts: how often each number was decoded.
  """

  def __init__(self):
    self.counts = collections.Counter()

  def decode(self, text):
    number = tf.numpy_function(self._count, [text], tf.int64, stateful=False)
    return tf.ensure_shape(number, [])

  def _count(self, text):
    self.counts[int(text)] += 1
    return np.int64(text)
