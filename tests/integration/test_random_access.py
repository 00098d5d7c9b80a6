"""What needs the element at an index, which no transformation here has."""

import pytest
import tensorflow as tf
from transformations import each_use

RANGE = tf.data.Dataset.range


@each_use
def test_an_index_is_refused(use, implementation):
  dataset = use.apply(RANGE(5), implementation)
  with pytest.raises(
    tf.errors.UnimplementedError, match="Random access is not implemented"
  ):
    tf.data.experimental.at(dataset, 0)


@each_use
def test_a_global_shuffle_is_refused(use, implementation):
  # TensorFlow has it since 2.17, and keeps it to itself.
  global_shuffle_op = pytest.importorskip(
    "tensorflow.python.data.experimental.ops.global_shuffle_op"
  )
  dataset = use.apply(RANGE(5), implementation)
  with pytest.raises(
    tf.errors.FailedPreconditionError, match="compatible with random access"
  ):
    list(global_shuffle_op._global_shuffle(dataset))
