"""What copies cost: nothing upstream, and no memory."""

import collections
import resource

import numpy as np
import tensorflow as tf
from iterators import values
from transformations import each_use

RANGE = tf.data.Dataset.range


@each_use
def test_upstream_runs_once_for_every_fresh_element(use, implementation):
  calls = collections.Counter()

  def decode(i):
    calls[int(i)] += 1
    return i

  dataset = RANGE(8).map(
    lambda i: tf.numpy_function(decode, [i], tf.int64, stateful=False)
  )
  dataset = use.apply(dataset, implementation)
  for epoch in (1, 2):
    assert len(values(dataset)) == len(use.emits(range(8)))
    assert calls == {i: epoch for i in range(8)}


@each_use
def test_copies_are_the_same_memory(use, implementation):
  dataset = RANGE(8).map(lambda i: (tf.fill([100], i), tf.fill([50, 2], -i)))
  elements = list(use.apply(dataset, implementation))
  for component in zip(*elements):
    assert len(component) == len(use.emits(range(8)))
    assert len({address(tensor) for tensor in component}) == 8


def address(tensor):
  """Returns where the values of `tensor` lie."""
  return np.asarray(memoryview(tensor)).ctypes.data


@each_use
def test_nothing_piles_up_in_a_long_run(use, implementation):
  count, size = 500, 2**20
  dataset = RANGE(count).map(lambda i: tf.fill([size], tf.cast(i, tf.uint8)))
  iterator = iter(use.apply(dataset, implementation))
  for _ in range(20):  # All buffers are full then.
    next(iterator)
  before = resident_bytes()
  for element in iterator:
    del element
  # The allocator keeps some of what was freed, but far less than half.
  assert resident_bytes() - before < count * size // 2


def resident_bytes():
  with open("/proc/self/statm") as statm:
    pages = int(statm.read().split()[1])
  return pages * resource.getpagesize()
