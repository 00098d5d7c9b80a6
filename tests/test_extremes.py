"""Huge factors and buffers, elements of no bytes and of a gigabyte.

Each is either handled as any other, or refused while the dataset is built.
"""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from iterators import plain_and_symbolic, resume, save, values, with_options
from transformations import USES, each_of, echo, shuffled_echo

import tfecho

RANGE = tf.data.Dataset.range
UNKNOWN = tf.data.UNKNOWN_CARDINALITY
HUGE = 2**40

# A graph with a variable can't be saved just so.
each_use_but_variables = each_of(
  {name: use for name, use in USES.items() if "variable" not in name}
)


@pytest.mark.parametrize(
  # factor, fresh elements, how many become of them
  "factor, fresh, emitted",
  [
    (2**62, 1, 2**62),
    (2**62, 2, UNKNOWN),
    (2**31, 2**31, 2**62),
    (2, 2**62 - 1, 2**63 - 2),
    (2, 2**62, UNKNOWN),
    (1.5, 2**62, 3 * 2**61),
    (1.5, 2**63 - 2, UNKNOWN),
    (1, 2**63 - 2, 2**63 - 2),
  ],
)
def test_a_number_beyond_64_bits_is_unknown_and_none_wraps_around(
  implementation, factor, fresh, emitted
):
  for apply in (echo(factor), shuffled_echo(factor, 1)):
    try:
      dataset = apply(RANGE(fresh), implementation)
    except ValueError as error:  # The graph would hold every copy.
      assert "copies" in str(error)
      continue
    assert dataset.cardinality() == emitted


def test_an_epoch_of_too_many_steps_is_refused():
  pipeline = tfecho.Pipeline(RANGE(4), batch_size=1)
  for place in ("decode", "batch"):
    with pytest.raises(ValueError, match="`factor` .* more of 4"):
      pipeline.steps_per_epoch(echo_after=place, factor=2**62)


def test_no_room_is_made_for_more_than_there_is_to_shuffle():
  pipeline = tfecho.Pipeline(RANGE(4), batch_size=2, shuffle_buffer=HUGE)
  order = [int(x) for batch in pipeline.dataset() for x in batch]
  assert sorted(order) == [0, 1, 2, 3]


@pytest.mark.parametrize("size", [2**28 + 1, HUGE, 2**62, 2**63])
def test_batches_and_shuffles_that_there_is_no_room_for_are_refused(size):
  with pytest.raises(ValueError, match=f"`batch_size` must be .*got {size}"):
    tfecho.Pipeline(RANGE(4), batch_size=size, drop_remainder=True)
  uncounted = RANGE(4).filter(lambda i: True)
  with pytest.raises(ValueError, match=f"`shuffle_buffer` must .*got {size}"):
    pipeline = tfecho.Pipeline(uncounted, batch_size=2, shuffle_buffer=size)
    pipeline.dataset()


def test_an_echo_buffer_that_a_graph_has_no_room_for_is_refused_by_name():
  pipeline = tfecho.Pipeline(RANGE(4).repeat(), batch_size=2)
  with pytest.raises(ValueError, match=f"`echo_buffer`: .* got {HUGE}"):
    pipeline.dataset(
      echo_after="decode", factor=2, echo_buffer=HUGE, implementation="graph"
    )


def test_echoes_of_echoes_know_when_they_are_too_many(implementation):
  dataset = RANGE(3)
  for expected in (3 * HUGE, UNKNOWN, UNKNOWN):
    dataset = echo(HUGE)(dataset, implementation)
    assert dataset.cardinality() == expected
  assert values(dataset.take(2)) == [0, 0]


@plain_and_symbolic
@pytest.mark.parametrize("factor", [2**62, 2.0**61, 1e15 + 0.5])
def test_a_huge_factor_is_an_element_for_ever(
  implementation, factor, symbolic, tmp_path
):
  def dataset():
    data = echo(factor)(RANGE(7, 9), implementation)
    return with_options(data, symbolic=symbolic)

  iterator = iter(dataset())
  assert values(itertools.islice(iterator, 3)) == [7, 7, 7]
  restored = resume(dataset(), save(iterator, tmp_path / "iterator"))
  assert values(itertools.islice(restored, 3)) == [7, 7, 7]


def test_the_largest_variable_is_an_element_for_ever(implementation):
  dataset = echo(tfecho.factor_variable(1e11))(RANGE(2), implementation)
  assert values(dataset.take(3)) == [0, 0, 0]


@pytest.mark.parametrize("size", [HUGE, 2**63 - 1])
def test_a_buffer_takes_the_memory_of_what_is_in_it(implementation, size):
  data = RANGE(5)
  assert values(echo(2, buffer_size=size)(data, implementation)) == sorted(
    [*range(5), *range(5)]
  )
  shuffled = values(shuffled_echo(2, size)(data, implementation))
  assert sorted(shuffled) == sorted([*range(5), *range(5)])


def test_a_stall_takes_the_memory_of_what_is_in_it(native_ops):
  stall = tfecho.echo_on_stall(
    2**63 - 1, buffer_size=HUGE, repeat_size=2**63 - 1, warmup=HUGE
  )
  assert values(RANGE(5).apply(stall)) == list(range(5))


@pytest.mark.parametrize("data", [RANGE(5).repeat(), RANGE(HUGE)])
def test_a_shuffle_of_more_copies_than_a_graph_can_hold_is_refused(data):
  with pytest.raises(ValueError, match="`buffer_size`.*got 1099511627776"):
    shuffled_echo(2, HUGE)(data, "graph")


@pytest.mark.parametrize(
  "build, argument",
  [
    (lambda n: tfecho.echo(2, buffer_size=n), "buffer_size"),
    (lambda n: tfecho.shuffle_after_echo(n), "buffer_size"),
    (lambda n: tfecho.shuffle_after_echo(4, min_distance=n), "min_distance"),
    (lambda n: tfecho.echo_on_stall(n, buffer_size=1), "max_factor"),
    (lambda n: tfecho.echo_on_stall(2, buffer_size=n), "buffer_size"),
    (
      lambda n: tfecho.echo_on_stall(2, buffer_size=1, repeat_size=n),
      "repeat_size",
    ),
    (lambda n: tfecho.echo_on_stall(2, buffer_size=1, warmup=n), "warmup"),
  ],
)
def test_what_does_not_fit_into_64_bits_is_refused_by_name(build, argument):
  with pytest.raises(ValueError, match=f"`{argument}`.*got {2**63}"):
    build(2**63)


@pytest.mark.parametrize(
  "element",
  [
    tf.zeros([0]),
    (tf.zeros([3, 0, 2], tf.int32), tf.constant("")),
    {"a": tf.zeros([0], tf.string), "b": tf.ragged.constant([[], []])},
    tf.sparse.from_dense(tf.zeros([0, 2])),
  ],
  ids=["vector", "tuple", "ragged", "sparse"],
)
@each_use_but_variables
def test_elements_of_no_bytes_are_elements(
  use, element, implementation, tmp_path
):
  def dataset():
    data = tf.data.Dataset.from_tensors(element).repeat(4)
    return with_options(use.apply(data, implementation))

  count = len(use.emits(range(4)))
  assert sum(1 for _ in dataset()) == count
  iterator = iter(dataset())
  next(iterator)
  saved = save(iterator, tmp_path / "iterator")
  assert sum(1 for _ in resume(dataset(), saved)) == count - 1


@pytest.mark.parametrize(
  "apply",
  [
    echo(3),
    echo(2.5, buffer_size=0),
    shuffled_echo(3, 2),
  ],
  ids=["echo", "echo by a fraction", "shuffle"],
)
def test_a_gigabyte_is_handed_on_and_never_copied(implementation, apply):
  check_that_a_gigabyte_is_not_copied(
    lambda data: apply(data, implementation)
  )


def test_a_gigabyte_is_kept_on_stall_and_never_copied(native_ops):
  check_that_a_gigabyte_is_not_copied(
    lambda data: data.apply(tfecho.echo_on_stall(3, buffer_size=1))
  )


def check_that_a_gigabyte_is_not_copied(apply):
  size = 2**30
  data = RANGE(1).map(lambda i: tf.fill([size], tf.cast(i, tf.uint8)))
  before = start_of_peak()
  places = {place(element) for element in apply(data)}
  assert len(places) == 1
  assert peak() - before < 1.5 * size


def place(tensor):
  values = np.asarray(memoryview(tensor))
  assert values.size == 2**30
  return values.ctypes.data


def start_of_peak():
  """Forgets the peak so far; returns what is resident, in bytes."""
  with open("/proc/self/clear_refs", "w") as clear:
    clear.write("5")
  return peak()


def peak():
  """Returns the most bytes that were resident."""
  with open("/proc/self/status") as status:
    (line,) = (line for line in status if line.startswith("VmHWM"))
  return int(line.split()[1]) * 1024
