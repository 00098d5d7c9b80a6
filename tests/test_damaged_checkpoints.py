"""Checkpoints that are cut, forged, or of another version: errors that say so.

Whatever they hold, no process dies of them. What belongs to another factor,
buffer or structure is tested in test_checkpoint_contents.py.
"""

import collections
import itertools
import pathlib

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st
from iterators import save, values, with_options
from states import put_back, taken_apart
from transformations import echo, shuffled_echo

import tfecho

N = 9
INT64 = (-(2**63), 2**63 - 1)


def stalling(data, implementation):
  """Repeats whenever it can: a memory of what was emitted is never empty."""
  del implementation
  return data.apply(
    tfecho.echo_on_stall(4, buffer_size=2, repeat_size=3, warmup=2)
  )


# name: what is applied, how often an element comes at most
PIPELINES = {
  "echo": (echo(3, buffer_size=0), 3),
  "echo by a fraction": (echo(2.5, buffer_size=0), 3),
  "random echo": (
    echo(2.5, rounding="random", seed=3, buffer_size=0), 3
  ),
  "shuffle": (shuffled_echo(2.5, 4, min_distance=2, seed=5), 3),
  "echo on stall": (stalling, 4),
}


def started(name, steps=0, implementation="native"):
  """Returns an iterator from which `steps` elements were taken."""
  apply, _ = PIPELINES[name]
  iterator = iter(
    with_options(apply(tf.data.Dataset.range(N), implementation))
  )
  for _ in range(steps):
    next(iterator)
  return iterator


def our_part(state):
  """Returns what our iterator has written, which every name begins with."""
  return state[min(name for name in state if "Echo" in name)]


each_pipeline = pytest.mark.parametrize("name", PIPELINES)


@pytest.mark.parametrize(
  "name", [name for name in PIPELINES if name != "echo on stall"]
)
@pytest.mark.parametrize("steps", [0, 4, 40])
def test_a_state_that_was_left_alone_is_restored(native_ops, name, steps):
  iterator = started(name)
  emitted = values(itertools.islice(iterator, steps))
  assert len(emitted) == min(steps, len(values(started(name))))
  restored = started(name)
  put_back(restored, taken_apart(iterator))
  assert values(restored) == values(iterator)


@each_pipeline
def test_a_state_of_another_version_is_refused(native_ops, name):
  state = taken_apart(started(name, 4))
  our_part(state)["tfecho_version"] = 2
  with pytest.raises(tf.errors.FailedPreconditionError) as caught:
    put_back(started(name), state)
  assert "does not fit this dataset: Iterator::Root::" in str(caught.value)
  assert "tfecho_version is 2 there and 1 here" in str(caught.value)


@each_pipeline
def test_a_state_that_lacks_something_is_refused(native_ops, name):
  whole = taken_apart(started(name, 4))
  for key in list(our_part(whole)):
    state = {part: dict(held) for part, held in whole.items()}
    del our_part(state)[key]
    with pytest.raises(tf.errors.FailedPreconditionError) as caught:
      put_back(started(name), state)
    assert f"has no {key} there" in str(caught.value)


@each_pipeline
@pytest.mark.parametrize("value", [[1, 2], 1.5, "x", [[3]]], ids=str)
def test_a_state_of_other_types_is_refused(native_ops, name, value):
  whole = taken_apart(started(name, 4))
  for key in list(our_part(whole)):
    state = {part: dict(held) for part, held in whole.items()}
    our_part(state)[key] = value
    with pytest.raises(
      tf.errors.FailedPreconditionError, match="does not fit this dataset"
    ):
      put_back(started(name), state)


# pipeline, elements taken from it, what is changed in its state, the error
#
# From a shuffle only one, behind which its state is the same in any order.
FORGERIES = [
  ("echo", 4, {"left": 3}, "left is 3, outside of 0 to 2"),
  ("echo", 4, {"left": -1}, "left is -1, outside of 0 to 2"),
  ("echo", 4, {"exhausted": 1}, "left is 2, outside of 0 to 0"),
  ("echo", 4, {"exhausted": 2}, "exhausted is 2"),
  ("echo", 4, {"emitted": 2}, "emitted is 2, outside of 1 to 1"),
  ("echo", 4, {"left": 0, "emitted": 3}, "has_element is 1, outside of 0 to 0"),
  ("echo", 4, {"remainder": 1}, "remainder is 1, outside of 0 to 0"),
  ("echo", 4, {"is_random": 1}, "is_random is 1 there and 0 here"),
  ("echo", 4, {"is_variable": 1}, "is_variable is 1 there and 0 here"),
  ("echo by a fraction", 4, {"remainder": 2}, "outside of 0 to 1"),
  ("shuffle", 1, {"num_slots": 3}, "num_slots is 3, outside of 4 to 4"),
  ("shuffle", 1, {"num_slots": 2**40}, "outside of 4 to 4"),
  ("shuffle", 1, {"position": 0}, r"slot\d can't be there"),
  ("shuffle", 1, {"position": -1}, "position is -1"),
  (
    "shuffle",
    1,
    {"position": 9, "slot0": [0, 2, 0, 0]},
    "slot0 is empty there",
  ),
  ("shuffle", 1, {"slot0": [9, 0, 0, 0]}, "slot0 can't be there"),
  ("shuffle", 1, {"slot0": [1, 1, 99, 0]}, "slot0 can't be there"),
  ("shuffle", 1, {"empty": 4}, "empty is 4, outside of -1 to 3"),
  ("shuffle", 1, {"empty": 3}, "slot3 is not empty there"),
  ("echo on stall", 4, {"num_kept": 99}, "num_kept is 99, outside of 0 to 3"),
  ("echo on stall", 4, {"num_fresh": 3}, "num_fresh is 3, outside of 0 to 2"),
  ("echo on stall", 4, {"kept0_emitted": 4}, "outside of 1 to 3"),
  ("echo on stall", 4, {"kept0_arrival": 2**40}, "kept0_arrival is"),
  # One more would be more than the type holds.
  ("echo on stall", 4, {"arrivals": INT64[1]}, "arrivals is"),
]


@pytest.mark.parametrize("name, steps, changes, message", FORGERIES)
def test_a_state_that_no_iterator_has_is_refused(
  native_ops, name, steps, changes, message
):
  state = taken_apart(started(name, steps))
  our_part(state).update(changes)
  with pytest.raises(tf.errors.FailedPreconditionError, match=message):
    put_back(started(name), state)


def test_a_shuffle_that_could_emit_nothing_is_refused(native_ops):
  state = taken_apart(started("shuffle", 1))
  our_part(state).update(slot0=[1, 1, 2, 0], slot1=[1, 1, 2, 0])
  with pytest.raises(tf.errors.FailedPreconditionError, match="that rest"):
    put_back(started("shuffle"), state)


def test_two_that_arrived_as_one_are_refused(native_ops):
  state = taken_apart(started("echo on stall", 2))
  kept = our_part(state)
  assert int(kept["num_kept"]) == 2
  kept["kept1_arrival"] = kept["kept0_arrival"]
  with pytest.raises(tf.errors.FailedPreconditionError, match="twice"):
    put_back(started("echo on stall"), state)


numbers = st.one_of(
  st.integers(-3, 12), st.sampled_from(INT64), st.integers(*INT64)
)


@hypothesis.settings(max_examples=60)
@hypothesis.given(
  name=st.sampled_from(sorted(PIPELINES)),
  steps=st.integers(0, 25),
  changes=st.lists(st.tuples(st.integers(0), numbers), max_size=3),
)
def test_no_number_in_a_state_does_harm(native_ops, name, steps, changes):
  state = taken_apart(started(name, min(steps, N)))
  ours = our_part(state)
  keys = sorted(key for key in ours if not key.endswith("]"))  # No elements.
  for choice, number in changes:
    key = keys[choice % len(keys)]
    value = np.array(ours[key])
    value.flat[choice % value.size] = number
    ours[key] = tf.constant(value)
  iterator = started(name)
  try:
    put_back(iterator, state)
  except tf.errors.FailedPreconditionError as error:
    assert "does not fit this dataset" in str(error)
    return
  copies = collections.Counter(values(itertools.islice(iterator, 100)))
  assert copies.keys() <= set(range(N))
  assert max(copies.values(), default=0) <= PIPELINES[name][1]


@pytest.mark.parametrize("file", ["index", "data-00000-of-00001"])
@pytest.mark.parametrize(
  "apply",
  [echo(2), echo(2.5), shuffled_echo(2, 3, seed=5)],
  ids=["echo", "echo by a fraction", "shuffle"],
)
def test_a_file_that_was_cut_is_refused_and_changes_nothing(
  apply, file, implementation, tmp_path
):
  def started():
    data = apply(tf.data.Dataset.range(N), implementation)
    iterator = iter(with_options(data))
    next(iterator)
    return iterator

  expected = values(started())
  saved = save(started(), tmp_path / "iterator")
  path = pathlib.Path(f"{saved}.{file}")
  whole = path.read_bytes()
  iterator = started()
  for end in (0, 1, len(whole) // 2, -8, -1):
    path.write_bytes(whole[:end])
    with pytest.raises((tf.errors.OpError, ValueError, IndexError)):
      tf.train.Checkpoint(iterator=iterator).read(saved).assert_consumed()
  assert values(iterator) == expected
