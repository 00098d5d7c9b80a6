"""What becomes of an error upstream, with and without `ignore_errors`."""

import contextlib

import pytest
import tensorflow as tf
from iterators import values
from transformations import USES, each_native_use, each_use

ERROR = "error"
GOOD = [1, 2, 4, 5]


def failing(words=("1", "2", "x", "4", "5")):
  """Returns a dataset of numbers, some of which can't be read."""
  strings = tf.data.Dataset.from_tensor_slices(list(words))
  return strings.map(lambda word: tf.strings.to_number(word, tf.int64))


def outcome_of(iterator):
  """Returns the next element, or ERROR."""
  try:
    return int(next(iterator))
  except tf.errors.InvalidArgumentError:
    return ERROR


def outcomes(dataset):
  """Returns what `dataset` emits, with ERROR where it fails."""
  iterator = iter(dataset)
  found = []
  with contextlib.suppress(StopIteration):
    while True:
      found.append(outcome_of(iterator))
  return found


@each_native_use
def test_natively_it_surfaces_once_and_the_stream_goes_on(use, implementation):
  found = outcomes(use.apply(failing(), implementation))
  assert found.count(ERROR) == 1
  if use.in_order:
    assert found.index(ERROR) == len(use.emits([1, 2]))
  found.remove(ERROR)
  assert use.comparable(found) == use.comparable(use.emits(GOOD))


@each_native_use
def test_natively_the_first_and_the_last_element_may_fail(use, implementation):
  found = outcomes(use.apply(failing(["x", "1", "2", "y"]), implementation))
  assert found.count(ERROR) == 2
  elements = [element for element in found if element != ERROR]
  assert use.comparable(elements) == use.comparable(use.emits([1, 2]))


@each_native_use
def test_natively_it_can_be_ignored_behind_the_transformation(
  use, implementation
):
  emitted = values(use.apply(failing(), implementation).ignore_errors())
  assert use.comparable(emitted) == use.comparable(use.emits(GOOD))


@each_use
def test_it_can_be_ignored_in_front_of_the_transformation(use, implementation):
  emitted = values(use.apply(failing().ignore_errors(), implementation))
  assert use.comparable(emitted) == use.comparable(use.emits(GOOD))


class TestGraph:
  """Announces how many elements there are, of which one is missing then."""

  @pytest.mark.parametrize("name", ["echo", "echo by a fraction"])
  def test_it_surfaces_once_and_the_end_is_another_error(self, name):
    use = USES[name]
    before, behind = len(use.emits([1, 2])), len(use.emits(GOOD))
    iterator = iter(use.apply(failing(), "graph"))
    found = [outcome_of(iterator) for _ in range(behind + 1)]

    assert found[before] == ERROR
    del found[before]
    assert found == use.emits(GOOD)
    for _ in range(3):
      with pytest.raises(
        tf.errors.FailedPreconditionError, match="expected to contain"
      ):
        next(iterator)

  def test_where_nothing_was_announced_the_end_is_the_end(self):
    use = USES["echo"]
    unknown = failing().filter(lambda element: element > 0)
    emitted = values(use.apply(unknown, "graph").ignore_errors())
    assert emitted == use.emits(GOOD)
