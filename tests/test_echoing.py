"""The elements that echo emits, and their number."""

import fractions
import itertools
import math

import pytest
import tensorflow as tf

import tfecho

FACTORS = [1, 2, 3, 7, 1.1, 1.5, 2.3, 2.5, 7 / 3, 1.0001, 9999 / 10000 + 1]


def even_copies(factor, start, stop):
  """The definition of even rounding, in exact arithmetic."""
  e = fractions.Fraction(factor).limit_denominator(10_000)
  emitted = [math.floor(i * e) for i in range(start, stop + 1)]
  return [after - before for before, after in zip(emitted, emitted[1:])]


def repeated(elements, copies):
  return list(
    itertools.chain.from_iterable([x] * n for x, n in zip(elements, copies))
  )


def values(dataset):
  return [int(x) for x in dataset]


def at_once(dataset):
  """Without the prefetch that TensorFlow adds to the end of a pipeline."""
  options = tf.data.Options()
  options.experimental_optimization.inject_prefetch = False
  return dataset.with_options(options)


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("n", [0, 1, 2, 30])
def test_elements_come_as_often_as_the_definition_says(
  implementation, factor, n
):
  dataset = tf.data.Dataset.range(n).apply(
    tfecho.echo(factor, implementation=implementation)
  )
  expected = repeated(range(n), even_copies(factor, 0, n))
  assert values(dataset) == expected
  assert dataset.cardinality() == len(expected) == len(dataset)


@pytest.mark.parametrize("buffer_size", [0, 1, 3, 100, tf.data.AUTOTUNE])
def test_reading_ahead_changes_no_element(implementation, buffer_size):
  dataset = tf.data.Dataset.range(7).apply(
    tfecho.echo(2.5, buffer_size=buffer_size, implementation=implementation)
  )
  assert values(dataset) == repeated(range(7), even_copies(2.5, 0, 7))


# the shape of an int32 element, what is asked for, what is read ahead
@pytest.mark.parametrize(
  "shape, buffer_size, ahead",
  [
    ([], tf.data.AUTOTUNE, 64),
    ([1024], tf.data.AUTOTUNE, 64),
    ([1025], tf.data.AUTOTUNE, tf.data.AUTOTUNE),
    ([None], tf.data.AUTOTUNE, tf.data.AUTOTUNE),
    ([], 5, 5),
    ([4096], 5, 5),
  ],
)
def test_of_small_elements_a_fixed_number_is_read_ahead(
  shape, buffer_size, ahead, implementation
):
  dataset = tf.data.Dataset.from_generator(
    lambda: [], output_signature=tf.TensorSpec(shape, tf.int32)
  ).apply(
    tfecho.echo(2, buffer_size=buffer_size, implementation=implementation)
  )
  assert prefetch_sizes(dataset) == [ahead]


def prefetch_sizes(dataset):
  """The buffer sizes of every `prefetch` in the graph of a dataset."""
  graph = tf.raw_ops.DatasetToGraphV2(
    input_dataset=tf.data.experimental.to_variant(dataset),
    external_state_policy=tf.data.experimental.ExternalStatePolicy.IGNORE.value,
  )
  graph = tf.compat.v1.GraphDef.FromString(graph.numpy())
  nodes = {node.name: node for node in graph.node}
  return [
    int(tf.make_ndarray(nodes[node.input[1]].attr["value"].tensor))
    for node in graph.node
    if node.op == "PrefetchDataset"
  ]


@pytest.mark.parametrize("factor", [1.1, 7 / 3, 2.5])
def test_nothing_drifts_far_into_a_stream(implementation, factor):
  n = 20_000
  dataset = tf.data.Dataset.range(n).apply(
    tfecho.echo(factor, implementation=implementation)
  )
  counts = dataset.batch(n).map(
    lambda x: tf.math.bincount(tf.cast(x, tf.int32), minlength=n)
  )
  total = sum(counts, start=tf.zeros(n, tf.int32))
  assert total.numpy().tolist() == even_copies(factor, 0, n)


@pytest.mark.parametrize("position", [2**40 + 7, 2**61 + 12_345])
def test_counts_stay_exact_where_products_would_overflow(
  implementation, position, tmp_path
):
  """The count depends on the position within the denominator only."""
  factor = fractions.Fraction(23_001, 10_000)
  # 10,000 elements further on, the counts are those of the start.
  offset = position % 10_000
  dataset = tf.data.Dataset.range(offset + 4).apply(
    tfecho.echo(factor, implementation=implementation)
  )
  last = values(dataset)[-sum(even_copies(factor, offset, offset + 4)):]
  expected = repeated(
    range(offset, offset + 4), even_copies(factor, position, position + 4)
  )
  assert last == expected


def test_the_end_is_the_end(implementation):
  iterator = iter(
    tf.data.Dataset.range(1).apply(
      tfecho.echo(2, implementation=implementation)
    )
  )
  assert [int(next(iterator)), int(next(iterator))] == [0, 0]
  for _ in range(2):
    with pytest.raises(StopIteration):
      next(iterator)


def test_every_pass_is_like_the_first(implementation):
  dataset = tf.data.Dataset.range(4).apply(
    tfecho.echo(1.5, implementation=implementation)
  )
  assert values(dataset) == values(dataset) == [0, 1, 1, 2, 3, 3]


def test_two_iterators_do_not_disturb_each_other(implementation):
  dataset = tf.data.Dataset.range(3).apply(
    tfecho.echo(2, implementation=implementation)
  )
  first, second = iter(dataset), iter(dataset)
  assert int(next(first)) == 0
  assert int(next(second)) == 0
  assert values(first) == [0, 1, 1, 2, 2]
  assert values(second) == [0, 1, 1, 2, 2]


def test_an_endless_input_stays_endless(implementation):
  dataset = tf.data.Dataset.range(3).repeat().apply(
    tfecho.echo(2.5, implementation=implementation)
  )
  assert dataset.cardinality() == tf.data.INFINITE_CARDINALITY
  assert values(dataset.take(10)) == [0, 0, 1, 1, 1, 2, 2, 0, 0, 0]


def test_an_input_of_unknown_length_stays_unknown(implementation):
  dataset = tf.data.Dataset.range(4).filter(lambda x: x > 1)
  dataset = dataset.apply(tfecho.echo(2, implementation=implementation))
  assert dataset.cardinality() == tf.data.UNKNOWN_CARDINALITY
  assert values(dataset) == [2, 2, 3, 3]


def test_elements_without_content_are_repeated_too(implementation):
  dataset = tf.data.Dataset.from_tensors(tf.zeros([0, 3])).apply(
    tfecho.echo(3, implementation=implementation)
  )
  assert [x.shape for x in dataset] == [(0, 3)] * 3


@pytest.mark.parametrize("factor", [1, 1.0])
def test_a_factor_of_one_is_the_identity(implementation, factor):
  dataset = tf.data.Dataset.range(5)
  echoed = dataset.apply(tfecho.echo(factor, implementation=implementation))
  assert values(echoed) == values(dataset)


@pytest.mark.parametrize("a, b", [(2, 3), (3, 2), (1, 4)])
def test_whole_factors_multiply(implementation, a, b):
  dataset = tf.data.Dataset.range(4)
  twice = dataset.apply(tfecho.echo(a, implementation=implementation)).apply(
    tfecho.echo(b, implementation=implementation)
  )
  once = dataset.apply(tfecho.echo(a * b, implementation=implementation))
  assert values(twice) == values(once)
  assert len(twice) == len(once)


@pytest.mark.parametrize(
  "stage, expected",
  [
    # What stands behind the echo; the elements of range(3) at factor 2 after it
    (lambda d: d.batch(4).map(tf.reduce_sum), [2, 4]),
    (lambda d: d.map(lambda x: x + 1), [1, 1, 2, 2, 3, 3]),
    (lambda d: d.prefetch(2), [0, 0, 1, 1, 2, 2]),
    (lambda d: d.repeat(2), [0, 0, 1, 1, 2, 2] * 2),
    (lambda d: d.take(3), [0, 0, 1]),
    (lambda d: d.skip(3), [1, 2, 2]),
    (lambda d: d.shard(2, 1), [0, 1, 2]),
    (lambda d: d.filter(lambda x: x > 0), [1, 1, 2, 2]),
    (lambda d: d.cache(), [0, 0, 1, 1, 2, 2]),
    (
      lambda d: tf.data.Dataset.zip((d, tf.data.Dataset.range(9))).map(
        lambda x, i: x * 10 + i
      ),
      [0, 1, 12, 13, 24, 25],
    ),
    (
      lambda d: d.window(3).flat_map(lambda w: w.batch(3)).map(tf.reduce_sum),
      [1, 5],
    ),
    (lambda d: d.concatenate(d), [0, 0, 1, 1, 2, 2] * 2),
  ],
)
def test_other_transformations_may_follow(implementation, stage, expected):
  dataset = tf.data.Dataset.range(3).apply(
    tfecho.echo(2, implementation=implementation)
  )
  assert values(stage(dataset)) == expected


@pytest.mark.parametrize(
  "stage, expected",
  [
    (lambda d: d.shuffle(10, seed=1).batch(6).map(tf.sort).unbatch(), None),
    (lambda d: d.repeat(2), [0, 0, 1, 1, 2, 2] * 2),
    (lambda d: d.skip(1), [1, 1, 2, 2]),
    (lambda d: d.take(0), []),
  ],
)
def test_other_transformations_may_stand_before(
  implementation, stage, expected
):
  dataset = stage(tf.data.Dataset.range(3)).apply(
    tfecho.echo(2, implementation=implementation)
  )
  expected = [0, 0, 1, 1, 2, 2] if expected is None else expected
  assert values(dataset) == expected


def test_skipping_inside_a_group_lands_inside_a_group(implementation):
  dataset = tf.data.Dataset.range(10).apply(
    tfecho.echo(7, implementation=implementation)
  )
  for skipped in (1, 6, 7, 8, 20, 69, 70, 71):
    assert values(dataset.skip(skipped)) == values(dataset)[skipped:]


class TestVariables:
  """A factor that is read for every fresh element."""

  @pytest.mark.parametrize(
    "dtype", [tf.int32, tf.int64, tf.float32, tf.float64]
  )
  def test_a_variable_is_as_good_as_its_value(self, implementation, dtype):
    dataset = tf.data.Dataset.range(4).apply(
      tfecho.echo(
        tf.Variable(3, dtype=dtype), implementation=implementation
      )
    )
    assert values(dataset) == repeated(range(4), [3] * 4)

  @pytest.mark.parametrize("factor", [1.5, 2.3, 2.5, 1.0001])
  def test_a_fractional_variable_counts_like_a_constant(
    self, implementation, factor
  ):
    dataset = tf.data.Dataset.range(50).apply(
      tfecho.echo(
        tfecho.factor_variable(factor), implementation=implementation
      )
    )
    assert values(dataset) == repeated(range(50), even_copies(factor, 0, 50))

  def test_a_change_holds_from_the_next_fresh_element_on(self, implementation):
    factor = tfecho.factor_variable(2)
    dataset = tf.data.Dataset.range(5).apply(
      tfecho.echo(factor, buffer_size=0, implementation=implementation)
    )
    iterator = iter(at_once(dataset))
    seen = [int(next(iterator))]
    factor.assign(3)  # In the middle of the first group.
    seen += [int(next(iterator)) for _ in range(4)]
    factor.assign(1)
    seen += values(iterator)
    assert seen == [0, 0, 1, 1, 1, 2, 3, 4]

  def test_the_remainder_is_carried_through_a_change(self, implementation):
    factor = tfecho.factor_variable(1.75)
    dataset = tf.data.Dataset.range(4).apply(
      tfecho.echo(factor, buffer_size=0, implementation=implementation)
    )
    iterator = iter(at_once(dataset))
    seen = [int(next(iterator))]  # Once; three quarters of a copy remain.
    factor.assign(1.25)
    seen += values(iterator)
    assert seen == [0, 1, 1, 2, 3]

  def test_its_number_of_elements_is_unknown(self, implementation):
    echo = tfecho.echo(
      tfecho.factor_variable(2), implementation=implementation
    )
    finite = tf.data.Dataset.range(3)
    assert finite.apply(echo).cardinality() == tf.data.UNKNOWN_CARDINALITY
    assert finite.take(0).apply(echo).cardinality() == 0
    assert (
      finite.repeat().apply(echo).cardinality()
      == tf.data.INFINITE_CARDINALITY
    )

  @pytest.mark.parametrize("value", [0, -1, 0.5, float("nan"), 1e12])
  def test_a_value_that_is_no_factor_stops_without_losing_an_element(
    self, implementation, value
  ):
    factor = tfecho.factor_variable(2)
    dataset = tf.data.Dataset.range(4).apply(
      tfecho.echo(factor, implementation=implementation)
    )
    iterator = iter(at_once(dataset))
    seen = [int(next(iterator)), int(next(iterator))]
    factor.assign(value)
    shown = f"{value:g}".replace("1e+12", "1e\\+12|999999995904")
    for _ in range(2):
      with pytest.raises(
        tf.errors.InvalidArgumentError, match=f"(?s)`factor`.*({shown})"
      ):
        next(iterator)
    factor.assign(3)
    seen += values(iterator)
    assert seen == [0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]


class TestRandomRounding:
  """One more copy with the probability of the fraction."""

  def test_the_same_seed_gives_the_same_copies(self, implementation):
    def echoed(seed):
      return tf.data.Dataset.range(100).apply(
        tfecho.echo(
          2.5, rounding="random", seed=seed, implementation=implementation
        )
      )

    assert values(echoed(1)) == values(echoed(1))
    assert values(echoed(1)) != values(echoed(2))

  def test_every_epoch_draws_anew(self, implementation):
    dataset = tf.data.Dataset.range(100).apply(
      tfecho.echo(
        2.5, rounding="random", seed=1, implementation=implementation
      )
    )
    first, second = values(dataset), values(dataset)
    assert first != second
    both = values(
      tf.data.Dataset.range(100)
      .apply(
        tfecho.echo(
          2.5, rounding="random", seed=1, implementation=implementation
        )
      )
      .repeat(2)
    )
    assert both == first + second

  @pytest.mark.parametrize("factor", [1.1, 2.5, 3.75])
  def test_the_mean_is_the_factor(self, implementation, factor):
    n = 20_000
    dataset = tf.data.Dataset.range(n).apply(
      tfecho.echo(
        factor, rounding="random", seed=1, implementation=implementation
      )
    )
    counts = tf.math.bincount(
      tf.concat([tf.cast(x, tf.int32) for x in dataset.batch(n)], axis=0),
      minlength=n,
    )
    whole, fraction = divmod(factor, 1)
    assert set(counts.numpy()) == {int(whole), int(whole) + 1}
    # Five standard deviations of a binomial mean: fails once in two million.
    tolerance = 5 * math.sqrt(fraction * (1 - fraction) / n)
    assert abs(counts.numpy().mean() - factor) < tolerance

  @pytest.mark.parametrize("make", [float, tfecho.factor_variable])
  def test_both_implementations_draw_alike(self, native_ops, make):
    native, graph = (
      tf.data.Dataset.range(200).apply(
        tfecho.echo(
          make(2.3), rounding="random", seed=7, implementation=implementation
        )
      )
      for implementation in ("native", "graph")
    )
    assert values(native) == values(graph)
    assert values(native) == values(graph)  # The second epoch.

  def test_its_number_of_elements_is_unknown(self, implementation):
    dataset = tf.data.Dataset.range(3).apply(
      tfecho.echo(2.5, rounding="random", implementation=implementation)
    )
    assert dataset.cardinality() == tf.data.UNKNOWN_CARDINALITY


def test_auto_takes_the_native_op_where_it_can_be_had(native_ops):
  dataset = tf.data.Dataset.range(1).apply(tfecho.echo(2))
  assert dataset.library is native_ops
