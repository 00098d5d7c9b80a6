"""Iterators that go on where a checkpoint was written.

A restored iterator has to emit what the saved one would have emitted, in this
epoch and in all that follow. Every test builds its datasets anew to restore
into, as a process does that starts again.
"""

import collections
import contextlib
import itertools

import pytest
import tensorflow as tf
from iterators import plain_and_symbolic, resume, save, values, with_options
from tensorflow.python.data.kernel_tests import (
  checkpoint_test_base,
  test_base,
)
from tensorflow.python.data.ops import test_mode
from transformations import (
  IMPLEMENTATIONS,
  counted_echo,
  echo,
  monitored,
  shuffled_echo,
  stalling_echo,
)

import tfecho

NATIVE = ("native",)


random_echo = echo(1.5, rounding="random", seed=3)


def in_epochs(apply, epochs):
  """Returns `apply` with a repeat behind it."""
  return lambda data, implementation: apply(data, implementation).repeat(epochs)


def echo_of_echo(data, implementation):
  """Twice as often, and then half as much again."""
  return echo(1.5)(echo(2)(data, implementation), implementation)


def echo_of_epochs(data, implementation):
  """What even rounding carries over passes from epoch to epoch."""
  return echo(1.5)(data.repeat(3), implementation)


def echo_in_interleave(data, implementation):
  """Several iterators of one echo, in a function."""
  return data.interleave(
    lambda i: echo(1.5)(tf.data.Dataset.range(i + 1), implementation),
    cycle_length=2,
  )


def echo_among_other_stages(data, implementation):
  """A pipeline with work and buffers on both sides of the echo."""
  data = data.map(lambda i: i * i, num_parallel_calls=2)
  data = echo(2)(data, implementation)
  data = data.map(lambda i: i + 1, num_parallel_calls=2)
  return data.batch(4).prefetch(2).repeat(2)


def shuffle_echo_and_read_ahead(data, implementation):
  """Checkpoints when the source has ended and its echo has not."""
  data = echo(2)(data.shuffle(3, seed=1), implementation)
  return data.prefetch(10).repeat(3)


def shuffle_before_and_behind(data, implementation):
  """The same, with an end that stretches over all elements."""
  data = data.shuffle(3, seed=1)
  return shuffled_echo(2, 3, seed=5)(data, implementation).repeat(3)


def random_shuffle(data, implementation):
  """Chance in the number of the copies and in their order."""
  data = random_echo(data, implementation)
  return data.apply(tfecho.shuffle_after_echo(2, seed=5)).repeat(3)


# name: what is applied to the numbers 0, 1, 2; its implementations
#
# The graph is left out where TensorFlow's own transformations fail. `flat_map`
# and an unoptimized `shuffle` drop their input when it has ended, and with it
# the seeds of the epochs to come. A `flat_map` of a `flat_map` that is restored
# twice from a symbolic checkpoint repeats elements.
PIPELINES = {
  "echo": (echo(2), IMPLEMENTATIONS),
  "echo, nothing read ahead": (echo(3, buffer_size=0), IMPLEMENTATIONS),
  "echo by a fraction": (in_epochs(echo(2.5), 2), IMPLEMENTATIONS),
  "random echo": (in_epochs(random_echo, 4), IMPLEMENTATIONS),
  "echo of an echo": (echo_of_echo, NATIVE),
  "echo of epochs": (echo_of_epochs, IMPLEMENTATIONS),
  "echo in interleave": (echo_in_interleave, IMPLEMENTATIONS),
  "echo among other stages": (echo_among_other_stages, IMPLEMENTATIONS),
  "shuffle": (in_epochs(shuffled_echo(2, 2, seed=5), 3), IMPLEMENTATIONS),
  "shuffle, always the same": (
    in_epochs(
      shuffled_echo(2, 2, seed=5, reshuffle_each_iteration=False), 3
    ),
    IMPLEMENTATIONS,
  ),
  "shuffle of more than there is": (
    shuffled_echo(2.5, 9, seed=5),
    IMPLEMENTATIONS,
  ),
  "shuffle at a distance": (
    in_epochs(shuffled_echo(4, 2, min_distance=1, seed=5), 2),
    NATIVE,
  ),
  "random shuffle": (random_shuffle, NATIVE),
  "shuffle, echo and read ahead": (shuffle_echo_and_read_ahead, NATIVE),
  "shuffle before and behind": (shuffle_before_and_behind, NATIVE),
  "echo that is counted": (counted_echo, NATIVE),
  "monitor": (monitored, NATIVE),
}

each_pipeline = pytest.mark.parametrize(
  "pipeline, implementation",
  [
    pytest.param(apply, implementation, id=f"{name}-{implementation}")
    for name, (apply, implementations) in PIPELINES.items()
    for implementation in implementations
  ],
  indirect=["implementation"],
)
each_option = pytest.mark.parametrize(
  "options",
  [
    pytest.param({"symbolic": symbolic, "optimized": optimized}, id=name)
    for name, symbolic, optimized in (
      ("plain", False, True),
      ("symbolic", True, True),
      ("plain, not optimized", False, False),
      ("symbolic, not optimized", True, False),
    )
  ],
)


def save_at_every_step(dataset, folder):
  """Returns all elements, and the checkpoints before and after each."""
  iterator = iter(dataset)
  elements, checkpoints = [], [save(iterator, folder / "0")]
  for element in iterator:
    elements.append(element.numpy().tolist())
    checkpoints.append(save(iterator, folder / str(len(elements))))
  return elements, checkpoints


@each_option
@each_pipeline
def test_an_iterator_goes_on_from_every_step(
  pipeline, implementation, options, tmp_path
):
  def dataset():
    data = pipeline(tf.data.Dataset.range(3), implementation)
    return with_options(data, **options)

  elements, checkpoints = save_at_every_step(dataset(), tmp_path)
  another = dataset()
  for i, checkpoint in enumerate(checkpoints):
    assert values(resume(another, checkpoint)) == elements[i:], i


@each_pipeline
@plain_and_symbolic
def test_an_iterator_survives_a_break_after_every_element(
  pipeline, implementation, symbolic, tmp_path
):
  def dataset():
    data = pipeline(tf.data.Dataset.range(3), implementation)
    return with_options(data, symbolic=symbolic)

  expected = values(dataset())
  emitted = []
  iterator = iter(dataset())
  while len(emitted) < len(expected):
    emitted.append(next(iterator).numpy().tolist())
    iterator = resume(dataset(), save(iterator, tmp_path / "broken"))
  assert emitted == expected
  assert values(iterator) == []


each_check = pytest.mark.parametrize(
  "check, mode",
  [
    ("verify_unused_iterator", "eager"),
    ("verify_fully_used_iterator", "eager"),
    ("verify_exhausted_iterator", "eager"),
    ("verify_multiple_breaks", "eager"),
    ("verify_unused_iterator", "session"),
    ("verify_exhausted_iterator", "session"),
    ("verify_multiple_breaks", "session"),
    # Only an iterator of a session can be started anew.
    ("verify_reset_restored_iterator", "session"),
  ],
)


# TensorFlow's checks ask for the options in a session, and it warns of that.
@pytest.mark.filterwarnings("ignore:To make it possible to preserve tf.data")
class TestTensorFlowsOwnChecks:
  """What TensorFlow asks of the checkpoints of its own transformations."""

  @pytest.fixture
  def run(self, tmp_path):
    class Checks(
      test_base.DatasetTestBase, checkpoint_test_base.CheckpointTestBase
    ):
      def get_temp_dir(self):
        return str(tmp_path)

    checks = Checks("verify_unused_iterator")

    def run(check, mode, dataset):
      num_outputs = len(values(dataset()))
      with contextlib.ExitStack() as stack:
        if mode == "session":
          stack.enter_context(tf.Graph().as_default())
        getattr(checks, check)(dataset, num_outputs)

    checks.setUp()
    yield run
    checks.tearDown()
    test_mode.toggle_test_mode(False)

  @pytest.mark.parametrize(
    "pipeline", ["echo by a fraction", "random echo", "shuffle"]
  )
  @plain_and_symbolic
  @each_check
  def test_pass(self, run, check, mode, pipeline, implementation, symbolic):
    apply, _ = PIPELINES[pipeline]

    def dataset():
      data = apply(tf.data.Dataset.range(3), implementation)
      return with_options(data, symbolic=symbolic)

    run(check, mode, dataset)

  @each_check
  def test_pass_where_timing_decides_the_order(
    self, native_ops, run, check, mode
  ):
    """With a warm-up to the end, in which nothing is repeated."""

    def dataset():
      data = stalling_echo(tf.data.Dataset.range(7), "native").repeat(2)
      return with_options(data)

    run(check, mode, dataset)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_a_stalling_echo_loses_nothing_over_many_breaks(
  native_ops, steps, tmp_path
):
  def dataset():
    stall = tfecho.echo_on_stall(3, buffer_size=2, repeat_size=4, warmup=0)
    return with_options(tf.data.Dataset.range(12).apply(stall))

  emitted = []
  iterator = iter(dataset())
  while part := values(itertools.islice(iterator, steps)):
    emitted += part
    iterator = resume(dataset(), save(iterator, tmp_path / "broken"))
  assert list(dict.fromkeys(emitted)) == list(range(12))
  assert max(collections.Counter(emitted).values()) <= 3


@plain_and_symbolic
@pytest.mark.parametrize("apply", [echo(2), shuffled_echo(2, 3, seed=5)])
def test_an_iterator_can_be_put_back_from_wherever_it_is(
  apply, symbolic, implementation, tmp_path
):
  data = apply(tf.data.Dataset.range(5), implementation)
  iterator = iter(with_options(data, symbolic=symbolic))
  next(iterator)
  saved = save(iterator, tmp_path / "iterator")
  expected = values(iterator)

  for consumed in (0, 1, 4, len(expected)):
    tf.train.Checkpoint(iterator=iterator).read(saved).assert_consumed()
    for _ in range(consumed):
      next(iterator)
    tf.train.Checkpoint(iterator=iterator).read(saved).assert_consumed()
    assert values(iterator) == expected, consumed
