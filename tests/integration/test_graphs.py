"""Transformations that leave the process, or live inside of a function."""

import tensorflow as tf
from iterators import values
from transformations import each_use

RANGE = tf.data.Dataset.range


def rebuilt(dataset):
  """Returns the dataset that the graph of `dataset` describes."""
  graph = tf.raw_ops.DatasetToGraphV2(
    input_dataset=tf.data.experimental.to_variant(dataset)
  )
  return tf.data.experimental.from_variant(
    tf.raw_ops.DatasetFromGraph(graph_def=graph), dataset.element_spec
  )


@each_use
def test_the_graph_describes_the_whole_dataset(use, implementation):
  dataset = rebuilt(use.apply(RANGE(5), implementation))
  expected = use.emits(range(5))
  assert use.comparable(values(dataset)) == use.comparable(expected)


@each_use
def test_the_graph_of_what_was_rebuilt_is_complete_too(use, implementation):
  dataset = rebuilt(rebuilt(use.apply(RANGE(5), implementation))).repeat(2)
  expected = 2 * use.emits(range(5))
  assert use.comparable(values(dataset)) == use.comparable(expected)


@each_use
def test_elements_can_be_saved_and_loaded(use, implementation, tmp_path):
  use.apply(RANGE(5), implementation).save(str(tmp_path))
  dataset = tf.data.Dataset.load(str(tmp_path))
  expected = use.emits(range(5))
  assert dataset.cardinality() == len(expected)
  assert use.comparable(values(dataset)) == use.comparable(expected)


@tf.function
def collected(dataset):
  """Returns the elements of `dataset`, stacked by a loop in a function."""
  elements = tf.TensorArray(tf.int64, 0, dynamic_size=True)
  for i, element in dataset.enumerate():
    elements = elements.write(tf.cast(i, tf.int32), element)
  return elements.stack()


@each_use
def test_a_function_may_iterate(use, implementation):
  dataset = use.apply(RANGE(5), implementation)
  for _ in range(2):
    elements = collected(dataset).numpy().tolist()
    assert use.comparable(elements) == use.comparable(use.emits(range(5)))


@each_use
def test_a_function_may_build(use, implementation):
  @tf.function(autograph=False)
  def elements(n):
    dataset = use.apply(RANGE(n), implementation)
    return dataset.batch(100).get_single_element()

  for n in (2, 5):
    emitted = elements(tf.constant(n, tf.int64)).numpy().tolist()
    assert use.comparable(emitted) == use.comparable(use.emits(range(n)))


@each_use
def test_a_function_may_ask_an_iterator_from_outside(use, implementation):
  iterator = iter(use.apply(RANGE(5), implementation))
  step = tf.function(lambda: iterator.get_next())
  expected = use.emits(range(5))
  emitted = [int(step()) for _ in expected]
  assert use.comparable(emitted) == use.comparable(expected)
  assert not iterator.get_next_as_optional().has_value()
