"""The order in which shuffle_after_echo emits copies."""

import collections
import math

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import tensorflow as tf

import tfecho


def shuffled(n, factor, buffer_size, implementation="native", **arguments):
  return (
    tf.data.Dataset.range(n)
    .apply(
      tfecho.echo(factor, buffer_size=0, implementation=implementation)
    )
    .apply(tfecho.shuffle_after_echo(buffer_size, **arguments))
  )


def values(dataset):
  # A whole epoch in one tensor: an element at a time costs 100 us in Python.
  return [int(x) for batch in dataset.batch(10**6) for x in batch.numpy()]


def distances(order):
  """Every distance between an emission and the last one of its element."""
  last = {}
  for position, element in enumerate(order):
    if element in last:
      yield position - last[element], position
    last[element] = position


class TestCounts:
  """Every element leaves exactly as often as echo says."""

  @pytest.mark.parametrize("factor", [1, 2, 2.5, 7 / 3, 4])
  @pytest.mark.parametrize("buffer_size", [1, 2, 7, 100])
  @pytest.mark.parametrize("n", [0, 1, 30])
  def test_counts_are_those_of_echo(
    self, implementation, n, factor, buffer_size
  ):
    echoed = tf.data.Dataset.range(n).apply(
      tfecho.echo(factor, implementation=implementation)
    )
    dataset = shuffled(n, factor, buffer_size, implementation)
    assert sorted(values(dataset)) == values(echoed)
    assert dataset.cardinality() == echoed.cardinality()

  def test_counts_are_those_of_random_rounding(self, implementation):
    def echoed():
      return tf.data.Dataset.range(50).apply(
        tfecho.echo(
          2.5, rounding="random", seed=3, implementation=implementation
        )
      )

    dataset = echoed().apply(tfecho.shuffle_after_echo(10))
    reference = echoed()
    for _ in range(2):  # The second epoch draws anew.
      assert sorted(values(dataset)) == values(reference)

  def test_counts_follow_a_variable(self, implementation):
    factor = tfecho.factor_variable(3)
    dataset = shuffled(10, factor, 4, implementation)
    assert collections.Counter(values(dataset)) == dict.fromkeys(range(10), 3)
    factor.assign(2)
    assert collections.Counter(values(dataset)) == dict.fromkeys(range(10), 2)

  @hypothesis.given(
    n=st.integers(0, 60),
    factor=st.fractions(1, 6, max_denominator=20),
    buffer_size=st.integers(1, 40),
    seed=st.integers(0, 2**31),
    data=st.data(),
  )
  @hypothesis.settings(max_examples=150)
  def test_promises_hold_for_any_arguments(
    self, native_ops, n, factor, buffer_size, seed, data
  ):
    distance = data.draw(st.integers(1, max(buffer_size // 2, 1)))
    order = values(
      shuffled(n, factor, buffer_size, min_distance=distance, seed=seed)
    )
    echoed = tf.data.Dataset.range(n).apply(tfecho.echo(factor))
    assert sorted(order) == values(echoed)
    ended = last_arrival(order, n, buffer_size)
    for between, position in distances(order):
      if position < ended or buffer_size >= 4 * distance <= n // 2:
        assert between >= distance


def last_arrival(order, n, buffer_size):
  """The position up to which the input cannot have ended.

  Element i can only be in the buffer once i + 1 - buffer_size others have left
  it for good.
  """
  left = collections.Counter(order)
  gone = 0
  for position, element in enumerate(order):
    if gone > n - buffer_size:
      return position
    left[element] -= 1
    gone += left[element] == 0
  return len(order)


class TestDistance:
  """Two emissions of one element are `min_distance` apart."""

  @pytest.mark.parametrize("factor", [2, 2.5, 4, 8])
  @pytest.mark.parametrize("buffer_size, distance", [(64, 16), (40, 5), (8, 2)])
  @pytest.mark.parametrize("seed", range(5))
  def test_no_two_copies_are_closer_to_the_end_in_a_large_buffer(
    self, native_ops, factor, buffer_size, distance, seed
  ):
    order = values(
      shuffled(300, factor, buffer_size, min_distance=distance, seed=seed)
    )
    assert min(between for between, _ in distances(order)) >= distance

  @pytest.mark.parametrize("seed", range(5))
  def test_no_batch_holds_an_element_twice(self, native_ops, seed):
    dataset = shuffled(1_000, 4, 128, min_distance=32, seed=seed).batch(32)
    for batch in dataset:
      assert len(set(batch.numpy())) == len(batch)

  @pytest.mark.parametrize("distance", [2, 16, 32])
  def test_the_distance_is_kept_until_the_input_ends(
    self, native_ops, distance
  ):
    order = values(
      shuffled(2_000, 3, 64, min_distance=distance, seed=1)
      .take(5_000)  # The input ends after 3 * (2,000 - 64) at the earliest.
    )
    assert min(between for between, _ in distances(order)) >= distance

  def test_without_a_distance_copies_do_meet(self, native_ops):
    order = values(shuffled(300, 4, 16, seed=1))
    assert min(between for between, _ in distances(order)) == 1

  def test_at_the_end_most_copies_left_come_first(self, native_ops):
    # The input is shorter than the buffer, hence at its end from the start.
    order = values(shuffled(10, 4, 100, seed=1))
    rounds = [set(order[i : i + 10]) for i in range(0, 40, 10)]
    assert rounds == [set(range(10))] * 4


class TestUniformity:
  """The choice is uniform among the elements that keep their distance."""

  @pytest.mark.parametrize("distance", [1, 8])
  def test_every_allowed_slot_is_chosen_equally_often(
    self, native_ops, distance
  ):
    """Chi-square over the age of the element chosen, 40,000 emissions.

    With a factor too large for any copies to run out, the buffer always holds
    elements 0 to 31, of which those emitted last are not allowed.
    """
    size, emissions = 32, 40_000
    order = values(
      shuffled(size, 10**6, size, min_distance=distance, seed=5)
      .take(emissions + 100)
    )
    # The input has not been asked for its end: it holds more.
    allowed = size - distance + 1
    ranks = np.zeros(allowed)
    recent = collections.deque(maxlen=distance - 1)
    for position, element in enumerate(order[: emissions + distance]):
      if position >= distance:  # At first, more are allowed.
        candidates = [x for x in range(size) if x not in recent]
        ranks[candidates.index(element)] += 1
      recent.append(element)
    expected = emissions / allowed
    chi_square = ((ranks - expected) ** 2 / expected).sum()
    # Mean of chi-square is allowed - 1, deviation sqrt(2 (allowed - 1)); five
    # deviations.
    degrees = allowed - 1
    assert chi_square < degrees + 5 * math.sqrt(2 * degrees)

  def test_an_element_stays_as_long_as_a_geometric_law_says(self, native_ops):
    """No rotation: the waiting times between copies have the right spread."""
    size = 50
    order = values(shuffled(20_000, 4, size, seed=2).take(60_000))
    gaps = np.array([between for between, _ in distances(order)])
    # Geometric with p = 1 / size: mean `size`, deviation sqrt(size (size - 1)).
    deviation = math.sqrt(size * (size - 1))
    tolerance = 5 * deviation / math.sqrt(len(gaps))
    assert abs(gaps.mean() - size) < tolerance
    assert abs(gaps.std() / deviation - 1) < 0.05

  def test_the_first_element_out_is_any_of_the_buffer(self, native_ops):
    first = collections.Counter(
      int(next(iter(shuffled(100, 2, 10, seed=seed)))) for seed in range(400)
    )
    assert set(first) == set(range(10))
    assert max(first.values()) < 40 + 5 * math.sqrt(36)


class TestSeeds:
  """Seeds and epochs behave as those of Dataset.shuffle."""

  def test_the_same_seed_gives_the_same_order(self, implementation):
    assert values(shuffled(50, 2, 20, implementation, seed=1)) == values(
      shuffled(50, 2, 20, implementation, seed=1)
    )

  def test_other_seeds_give_other_orders(self, implementation):
    assert values(shuffled(50, 2, 20, implementation, seed=1)) != values(
      shuffled(50, 2, 20, implementation, seed=2)
    )

  def test_without_a_seed_orders_differ(self, implementation):
    assert values(shuffled(50, 2, 20, implementation)) != values(
      shuffled(50, 2, 20, implementation)
    )

  def test_every_epoch_has_an_order_of_its_own(self, implementation):
    dataset = shuffled(50, 2, 20, implementation, seed=1)
    first, second = values(dataset), values(dataset)
    assert first != second
    repeated = values(shuffled(50, 2, 20, implementation, seed=1).repeat(2))
    assert repeated == first + second

  @pytest.mark.parametrize("seed", [None, 1])
  def test_the_order_is_kept_if_asked(self, implementation, seed):
    dataset = shuffled(
      50, 2, 20, implementation, seed=seed, reshuffle_each_iteration=False
    )
    order = values(dataset)
    assert values(dataset) == order
    assert values(dataset.repeat(2)) == order * 2

  def test_the_global_seed_fixes_the_order(self, implementation):
    def order():
      tf.random.set_seed(3)
      return values(shuffled(50, 2, 20, implementation))

    assert order() == order()

  def test_a_seeded_order_is_the_same_in_every_version(self, native_ops):
    """A user who recorded a seed must get the same order from a new release."""
    tf.random.set_seed(1)
    order = values(shuffled(8, 2, 4, min_distance=2, seed=42))
    assert order == [1, 0, 1, 0, 3, 5, 3, 4, 5, 4, 2, 7, 6, 7, 6, 2]


class TestPlace:
  """It stands right behind echo."""

  @pytest.mark.parametrize(
    "dataset",
    [
      lambda e: tf.data.Dataset.range(3),
      lambda e: e.map(lambda x: x),
      lambda e: e.batch(2),
      lambda e: e.prefetch(1),
      lambda e: e.apply(tfecho.shuffle_after_echo(4)),
    ],
  )
  def test_elsewhere_it_points_to_dataset_shuffle(
    self, implementation, dataset
  ):
    echoed = tf.data.Dataset.range(3).apply(
      tfecho.echo(2, implementation=implementation)
    )
    with pytest.raises(ValueError, match="Dataset.shuffle"):
      dataset(echoed).apply(tfecho.shuffle_after_echo(4))

  @pytest.mark.parametrize(
    "arguments, message",
    [
      ({"buffer_size": 0}, "`buffer_size`.*0"),
      ({"buffer_size": -1}, "`buffer_size`.*-1"),
      ({"buffer_size": 2.5}, "`buffer_size`.*2.5"),
      ({"buffer_size": True}, "`buffer_size`.*True"),
      ({"buffer_size": 8, "min_distance": 0}, "`min_distance`.*0"),
      ({"buffer_size": 8, "min_distance": -3}, "`min_distance`.*-3"),
      ({"buffer_size": 8, "min_distance": 5}, "`min_distance`.*4.*5"),
      ({"buffer_size": 1, "min_distance": 2}, "`min_distance`.*2"),
      ({"buffer_size": 4, "seed": "a"}, "`seed` must be an int .* got 'a'"),
      ({"buffer_size": 4, "seed": 1.5}, "`seed` must be an int .* got 1.5"),
      (
        {"buffer_size": 4, "reshuffle_each_iteration": "x"},
        "`reshuffle_each_iteration` must be True or False, got 'x'",
      ),
    ],
  )
  def test_bad_sizes_are_refused_by_name_and_value(self, arguments, message):
    with pytest.raises(ValueError, match=message):
      tfecho.shuffle_after_echo(**arguments)

  def test_sizes_may_be_numpy_integers(self, implementation):
    echo = tfecho.echo(2, implementation=implementation)
    shuffle = tfecho.shuffle_after_echo(np.int64(2))
    shuffled = tf.data.Dataset.range(4).apply(echo).apply(shuffle)
    assert sorted(map(int, shuffled)) == [0, 0, 1, 1, 2, 2, 3, 3]

  def test_a_distance_says_that_it_needs_the_native_echo(self):
    with pytest.raises(ValueError, match="`min_distance`.*native.*3"):
      shuffled(10, 2, 8, "graph", min_distance=3)


def test_the_buffer_holds_fresh_elements_not_copies(native_ops):
  """At the first emission, as many elements were read as the buffer holds."""
  stats = tfecho.Stats()
  dataset = (
    tf.data.Dataset.range(1_000)
    .apply(tfecho.echo(5, buffer_size=0, stats=stats))
    .apply(tfecho.shuffle_after_echo(100))
  )
  options = tf.data.Options()
  options.experimental_optimization.inject_prefetch = False
  next(iter(dataset.with_options(options)))
  assert stats.read == 100
