"""What is in the checkpoint of an iterator, and what can't be.

That iterators go on where they were saved is tested in test_checkpoints.py.
"""

import glob
import os

import pytest
import tensorflow as tf
from elements import STRUCTURES, plain_elements
from iterators import plain_and_symbolic, resume, save, values, with_options
from transformations import echo, echo_by_variable, shuffled_echo

import tfecho


@pytest.mark.parametrize("structure", STRUCTURES)
@plain_and_symbolic
@pytest.mark.parametrize(
  "apply",
  [echo(2), shuffled_echo(2, 2, seed=5)],
  ids=["echo", "shuffle_after_echo"],
)
def test_elements_of_every_kind_are_saved_between_their_copies(
  structure, apply, symbolic, implementation, tmp_path
):
  def dataset():
    data = apply(STRUCTURES[structure](), implementation)
    return with_options(data, symbolic=symbolic)

  iterator = iter(dataset())
  next(iterator)
  saved = save(iterator, tmp_path / "iterator")
  assert plain_elements(resume(dataset(), saved)) == plain_elements(iterator)


@plain_and_symbolic
@pytest.mark.parametrize(
  "apply",
  [
    echo(1.5, rounding="random"),
    shuffled_echo(2, 3),
    shuffled_echo(2, 3, reshuffle_each_iteration=False),
  ],
  ids=["random echo", "shuffle", "shuffle, always the same"],
)
def test_an_epoch_that_nobody_seeded_goes_on_too(
  apply, symbolic, implementation, tmp_path
):
  def dataset():
    data = apply(tf.data.Dataset.range(20), implementation)
    return with_options(data, symbolic=symbolic)

  iterator = iter(dataset())
  for _ in range(7):
    next(iterator)
  saved = save(iterator, tmp_path / "iterator")
  assert values(resume(dataset(), saved)) == values(iterator)


@plain_and_symbolic
@pytest.mark.parametrize("buffer_size", [0, 2])
@pytest.mark.parametrize("shuffled", [False, True])
def test_counting_makes_no_difference(
  native_ops, shuffled, buffer_size, symbolic, tmp_path
):
  def dataset(stats):
    data = tf.data.Dataset.range(9).map(lambda i: i + 1)
    data = data.apply(tfecho.echo(2, buffer_size=buffer_size, stats=stats))
    if shuffled:
      data = data.apply(tfecho.shuffle_after_echo(4, seed=5))
    if stats:
      data = data.apply(tfecho.monitor(stats))
    return with_options(data, symbolic=symbolic)

  counting, silent = dataset(tfecho.Stats()), dataset(None)
  for before, behind in ((counting, silent), (silent, counting)):
    iterator = iter(before)
    for _ in range(5):
      next(iterator)
    saved = save(iterator, tmp_path / "iterator")
    assert values(resume(behind, saved)) == values(iterator)


class TestVariableFactor:
  """Its value is no part of the iterator: the restored one reads it anew."""

  def dataset(self, factor, implementation):
    options = tf.data.Options()
    # Nothing may read ahead of the test with the value from before.
    options.experimental_optimization.inject_prefetch = False
    if implementation == "graph":
      options.experimental_external_state_policy = (
        tf.data.experimental.ExternalStatePolicy.IGNORE
      )
    data = echo(factor)(tf.data.Dataset.range(4), implementation)
    return data.with_options(options)

  def test_the_copies_in_progress_keep_their_number(
    self, implementation, tmp_path
  ):
    factor = tfecho.factor_variable(3)
    iterator = iter(self.dataset(factor, implementation))
    assert [next(iterator).numpy() for _ in range(4)] == [0, 0, 0, 1]
    saved = save(iterator, tmp_path / "iterator")

    other = tfecho.factor_variable(2)
    restored = resume(self.dataset(other, implementation), saved)
    assert values(restored) == [1, 1, 2, 2, 3, 3]

  def test_a_remainder_is_carried_over(self, implementation, tmp_path):
    factor = tfecho.factor_variable(1.5)
    iterator = iter(self.dataset(factor, implementation))
    assert next(iterator).numpy() == 0
    saved = save(iterator, tmp_path / "iterator")
    restored = resume(self.dataset(factor, implementation), saved)
    assert values(restored) == [1, 1, 2, 3, 3]

  def test_the_graph_needs_to_be_told_to_save_it(self, tmp_path):
    data = echo(tfecho.factor_variable(2))(tf.data.Dataset.range(3), "graph")
    with pytest.raises(tf.errors.FailedPreconditionError, match="stateful"):
      save(iter(data), tmp_path / "iterator")


class TestUpstreamErrors:
  """The position behind an element that failed is a position like others."""

  def dataset(self, words, apply, symbolic):
    data = tf.data.Dataset.from_tensor_slices(words.split()).repeat(2)
    data = apply(data.map(tf.strings.to_number))
    return with_options(data, symbolic=symbolic)

  def rest(self, iterator, save=lambda steps: None):
    """Returns what is left, errors included; saves before every step."""
    outcomes = []
    while True:
      save(len(outcomes))
      try:
        outcomes.append(next(iterator).numpy().tolist())
      except tf.errors.InvalidArgumentError:
        outcomes.append("error")
      except StopIteration:
        return outcomes

  @plain_and_symbolic
  @pytest.mark.parametrize(
    "apply",
    [
      echo(5),
      echo(5, buffer_size=0),
      echo(1.5, rounding="random", seed=3),
      shuffled_echo(2, 5, seed=5),
    ],
    ids=["echo", "nothing read ahead", "random echo", "half-filled shuffle"],
  )
  # A batch drops what was written for it if one of its elements fails.
  @pytest.mark.parametrize(
    "words, behind",
    [
      ("1 2 x 4 y z", lambda data: data),
      ("1 2 3 4 5 x 7 8 9 y z 12", lambda data: data.batch(4)),
    ],
    ids=["nothing behind", "batch behind"],
  )
  def test_are_no_obstacle(
    self, native_ops, apply, words, behind, symbolic, tmp_path
  ):
    def dataset():
      return self.dataset(
        words, lambda data: behind(apply(data, "native")), symbolic
      )

    checkpoints = []
    iterator = iter(dataset())
    outcomes = self.rest(
      iterator, lambda i: checkpoints.append(save(iterator, tmp_path / str(i)))
    )
    assert outcomes.count("error") == 6
    for i, checkpoint in enumerate(checkpoints):
      rest = self.rest(resume(dataset(), checkpoint))
      expected = outcomes[i:]
      if symbolic:
        # A map or prefetch of TensorFlow that failed writes no new position:
        # what is restored from there fails once more.
        rest, expected = (
          [outcome for outcome in outcomes if outcome != "error"]
          for outcomes in (rest, expected)
        )
      assert rest == expected, i


def shuffle_of_all(factor):
  """A shuffle over the whole input, in which nothing is read ahead."""

  def apply(data, implementation):
    data = echo(factor, buffer_size=0)(data, implementation)
    return data.apply(tfecho.shuffle_after_echo(4, seed=5))

  return apply


class TestSize:
  """A checkpoint holds the elements that it has to, and nothing piles up."""

  ELEMENT = 50_000
  # Positions, names, and the table of the file.
  OVERHEAD = 15_000

  def size(self, iterator, path):
    saved = save(iterator, path)
    return sum(os.path.getsize(name) for name in glob.glob(f"{saved}*"))

  # what is applied, implementation, symbolic, elements in a checkpoint at most
  @pytest.mark.parametrize(
    "apply, implementation, symbolic, elements",
    [
      (echo(6, buffer_size=0), "native", False, 1),
      (echo(6, buffer_size=0), "graph", False, 1),
      (echo(6, buffer_size=2), "native", False, 3),
      (echo(6, buffer_size=2), "native", True, 0),
      (echo(6, buffer_size=2), "graph", True, 0),
      (shuffle_of_all(6), "native", False, 4),
      (shuffle_of_all(6), "native", True, 4),
      (shuffle_of_all(100), "native", True, 4),
      # `Dataset.shuffle` writes every copy.
      (shuffle_of_all(6), "graph", False, 24),
    ],
    indirect=["implementation"],
  )
  def test_is_bounded_at_every_step(
    self, apply, implementation, symbolic, elements, tmp_path
  ):
    data = tf.data.Dataset.range(4).map(self.incompressible)
    data = apply(data, implementation).repeat(2)
    # Optimized, the map would be a parallel one, with results in store.
    data = with_options(data, symbolic=symbolic, optimized=False)
    iterator = iter(data)
    sizes = [self.size(iterator, tmp_path / "iterator") for _ in iterator]
    most = elements * self.ELEMENT
    assert most <= max(sizes) <= most + self.OVERHEAD

  def incompressible(self, i):
    """Returns an element that no file holds in fewer bytes."""
    numbers = tf.random.stateless_uniform(
      [self.ELEMENT // 4], [i, i], None, None, tf.int32
    )
    return tf.bitcast(numbers, tf.uint8)


@pytest.mark.parametrize("apply", [echo(2), shuffled_echo(2, 3)])
@pytest.mark.parametrize(
  "stateful",
  [
    lambda i: tf.numpy_function(abs, [i], tf.int64),
    lambda i: i + tf.random.uniform([], 0, 9, tf.int64),
  ],
  ids=["numpy_function", "random.uniform"],
)
def test_an_upstream_that_cannot_be_saved_is_refused(
  apply, stateful, implementation, tmp_path
):
  data = tf.data.Dataset.range(1_000).map(stateful)
  iterator = iter(apply(data, implementation))
  next(iterator)
  with pytest.raises(tf.errors.FailedPreconditionError, match="is stateful"):
    save(iterator, tmp_path / "iterator")


def repeated(element):
  """A dataset of one element, many times."""
  return tf.data.Dataset.from_tensors(element).repeat(9)


# saved from, restored into, what the error says
MISFITS = {
  "other factor": (echo(2), echo(3), "numerator is 2 there and 3 here"),
  "other fraction": (echo(2.5), echo(5), "denominator is 2 there and 1 here"),
  "other factor of a shuffle": (
    shuffled_echo(2, 4),
    shuffled_echo(3, 4),
    "numerator is 2 there and 3 here",
  ),
  "other buffer size": (
    shuffled_echo(2, 4),
    shuffled_echo(2, 5),
    "buffer_size is 4 there and 5 here",
  ),
  "other distance": (
    shuffled_echo(2, 4),
    shuffled_echo(2, 4, min_distance=2),
    "min_distance is 1 there and 2 here",
  ),
  "other rounding": (
    echo(2.5),
    echo(2.5, rounding="random"),
    "is_random is 0 there and 1 here",
  ),
  "variable instead of constant": (
    echo_by_variable(2),
    echo(1),
    "is_variable is 1 there and 0 here",
  ),
  "shuffle instead of echo": (
    echo(2),
    shuffled_echo(2, 4),
    "does not fit this dataset: .*ShuffleAfterEcho has no",
  ),
  "echo instead of shuffle": (
    shuffled_echo(2, 4),
    echo(2),
    "does not fit this dataset: .*Echo has no",
  ),
}


@plain_and_symbolic
@pytest.mark.parametrize("misfit", MISFITS)
def test_a_checkpoint_of_another_transformation_is_refused(
  native_ops, misfit, symbolic, tmp_path
):
  saved_from, restored_into, message = MISFITS[misfit]
  iterator, other = (
    iter(with_options(apply(repeated([1, 2]), "native"), symbolic=symbolic))
    for apply in (saved_from, restored_into)
  )
  next(iterator)
  saved = save(iterator, tmp_path / "iterator")
  with pytest.raises(tf.errors.OpError, match=message):
    tf.train.Checkpoint(iterator=other).read(saved)


STALLING = {
  "max_factor": (2, 3),
  "buffer_size": (4, 5),
  "repeat_size": (4, 5),
}


@pytest.mark.parametrize("argument", STALLING)
def test_a_checkpoint_of_another_echo_on_stall_is_refused(
  native_ops, argument, tmp_path
):
  there, here = STALLING[argument]

  def started(value):
    sizes = {"max_factor": 2, "buffer_size": 4, "repeat_size": 4}
    stall = tfecho.echo_on_stall(**{**sizes, argument: value})
    iterator = iter(with_options(tf.data.Dataset.range(9).apply(stall)))
    next(iterator)
    return iterator

  saved = save(started(there), tmp_path / "iterator")
  message = f"{argument} is {there} there and {here} here"
  with pytest.raises(tf.errors.FailedPreconditionError, match=message):
    tf.train.Checkpoint(iterator=started(here)).read(saved)


@pytest.mark.parametrize("apply", [echo(2), echo(2.5), shuffled_echo(2, 4)])
@pytest.mark.parametrize(
  "other, message",
  [
    ([1, 2, 3], r"is int32\[2\], the dataset has int32\[3\]"),
    ([[1, 2]], r"is int32\[2\], the dataset has int32\[1,2\]"),
    ([1.0, 2.0], r"is int32\[2\], the dataset has float\[2\]"),
    (([1, 2], 3), r"has no (element|slot0)\[1\] there"),
  ],
  ids=["length", "rank", "dtype", "components"],
)
def test_a_checkpoint_with_elements_of_another_kind_is_refused(
  implementation, apply, other, message, tmp_path
):
  iterator, restored = (
    iter(with_options(apply(repeated(element), implementation)))
    for element in ([1, 2], other)
  )
  next(iterator)
  saved = save(iterator, tmp_path / "iterator")
  if implementation == "graph":
    message = "Failed to restore"  # With TensorFlow's own reason.
  with pytest.raises(tf.errors.OpError, match=message):
    tf.train.Checkpoint(iterator=restored).read(saved)


# The stages that the graph implementation is made of don't keep their
# arguments, only what they are.
@pytest.mark.parametrize(
  "saved_from, restored_into",
  [
    (echo(5), echo(2.5)),
    (echo(2.5), echo(2.5, rounding="random")),
    (echo(2, buffer_size=0), echo(2, buffer_size=2)),
    (echo(2), shuffled_echo(2, 4)),
    (shuffled_echo(2, 4), echo(2)),
  ],
  ids=["fraction", "rounding", "read-ahead", "shuffle", "no shuffle"],
)
def test_a_graph_refuses_a_checkpoint_of_other_stages(
  saved_from, restored_into, tmp_path
):
  iterator, other = (
    iter(with_options(apply(repeated([1, 2]), "graph")))
    for apply in (saved_from, restored_into)
  )
  next(iterator)
  saved = save(iterator, tmp_path / "iterator")
  with pytest.raises(tf.errors.OpError, match="Failed to restore"):
    tf.train.Checkpoint(iterator=other).read(saved)


@pytest.mark.parametrize(
  "saved_from, restored_into",
  [
    (echo(2), echo(3)),
    (echo(3), echo(2)),
    (shuffled_echo(2, 4), shuffled_echo(2, 2)),
    (shuffled_echo(2, 2), shuffled_echo(2, 4)),
  ],
  ids=["larger factor", "smaller factor", "smaller buffer", "larger buffer"],
)
def test_a_graph_with_other_arguments_fails_before_the_data_ends(
  saved_from, restored_into, tmp_path
):
  iterator, other = (
    iter(with_options(apply(tf.data.Dataset.range(9), "graph")))
    for apply in (saved_from, restored_into)
  )
  for _ in range(7):
    next(iterator)
  saved = save(iterator, tmp_path / "iterator")
  tf.train.Checkpoint(iterator=other).read(saved)
  with pytest.raises(tf.errors.OpError):
    values(other)
