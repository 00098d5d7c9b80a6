"""What a Pipeline makes of its source, and how often its stages run."""

import collections
import functools
import logging
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from elements import Point

import tfecho
from tfecho.pipeline import PLACES, Pipeline

RANGE = tf.data.Dataset.range
ENDLESS = tf.data.INFINITE_CARDINALITY
UNKNOWN = tf.data.UNKNOWN_CARDINALITY


def values(dataset):
  """The batches of scalars that a dataset makes, as lists."""
  return [batch.numpy().tolist() for batch in dataset]


def flat(dataset):
  """The same without the batches."""
  return [value for batch in values(dataset) for value in batch]


class Calls:
  """Counts the calls of stages that pass on what they get."""

  def __init__(self):
    self._made = []

  def stage(self, name):
    # Stages run in parallel, and appending is safe there.
    def call(element):
      self._made.append(name)
      return element

    return lambda element: tf.numpy_function(call, [element], tf.int64)

  def pipeline(self, source, **arguments):
    stages = {name: self.stage(name) for name in ("read", "decode", "augment")}
    return Pipeline(source, **stages, **arguments)

  def counts(self):
    return dict(collections.Counter(self._made))


class TestCounts:
  """Every stage runs once for what reaches it, and nothing is lost."""

  @pytest.mark.parametrize(
    # How often each stage runs for 20 elements, and the batches of 4.
    "echo_after, factor, read, decode, augment, batches",
    [
      (None, None, 20, 20, 20, 5),
      ("read", 1, 20, 20, 20, 5),
      ("read", 2, 20, 40, 40, 10),
      ("read", 2.5, 20, 50, 50, 13),
      ("decode", 1, 20, 20, 20, 5),
      ("decode", 2, 20, 20, 40, 10),
      ("decode", 2.5, 20, 20, 50, 13),
      ("augment", 1, 20, 20, 20, 5),
      ("augment", 2, 20, 20, 20, 10),
      ("augment", 2.5, 20, 20, 20, 13),
      ("batch", 1, 20, 20, 20, 5),
      ("batch", 2, 20, 20, 20, 10),
      ("batch", 2.5, 20, 20, 20, 12),
    ],
  )
  def test_stages_run_for_fresh_elements_before_and_for_copies_behind_the_echo(
    self, implementation, echo_after, factor, read, decode, augment, batches
  ):
    calls = Calls()
    dataset = calls.pipeline(RANGE(20), batch_size=4, seed=1).dataset(
      echo_after=echo_after, factor=factor, implementation=implementation
    )
    assert len(values(dataset)) == batches
    expected = {"read": read, "decode": decode, "augment": augment}
    assert calls.counts() == expected

  @pytest.mark.parametrize("echo_after", PLACES[:3])
  @pytest.mark.parametrize("kind", ["random", "variable"])
  def test_a_factor_that_is_not_known_in_advance_repeats_no_work(
    self, implementation, echo_after, kind
  ):
    factor, rounding = 2.5, "random"
    if kind == "variable":
      factor, rounding = tfecho.factor_variable(2.5), "even"
    calls = Calls()
    dataset = calls.pipeline(RANGE(40), batch_size=8).dataset(
      echo_after=echo_after,
      factor=factor,
      rounding=rounding,
      repeat=False,
      implementation=implementation,
    )
    emitted = len(flat(dataset))
    counts = [calls.counts()[name] for name in ("read", "decode", "augment")]
    fresh = 1 + PLACES.index(echo_after)
    assert counts == [40] * fresh + [emitted] * (3 - fresh)
    # Mean 100, standard deviation 3.2 where chance decides.
    assert abs(emitted - 100) <= (16 if kind == "random" else 0)

  @pytest.mark.parametrize("echo_after", PLACES)
  def test_every_element_comes_as_often_as_the_factor_says(
    self, implementation, echo_after
  ):
    pipeline = Pipeline(RANGE(64), read=abs, batch_size=8, shuffle_buffer=16)
    dataset = pipeline.dataset(
      echo_after=echo_after, factor=3, implementation=implementation
    )
    assert sorted(flat(dataset)) == sorted(3 * list(range(64)))

  def test_what_a_batch_echo_repeats_is_the_batch(self, implementation):
    pipeline = Pipeline(RANGE(5), batch_size=2)
    dataset = pipeline.dataset(
      echo_after="batch", factor=2, implementation=implementation
    )
    assert values(dataset) == [[0, 1], [0, 1], [2, 3], [2, 3], [4], [4]]

  def test_a_buffer_behind_a_batch_echo_shuffles_batches(self, implementation):
    pipeline = Pipeline(RANGE(400), batch_size=2, seed=0)
    dataset = pipeline.dataset(
      echo_after="batch",
      factor=2,
      echo_buffer=10,
      implementation=implementation,
    )
    batches = values(dataset)
    in_order = [[2 * i, 2 * i + 1] for i in range(200) for _ in range(2)]
    assert batches != in_order
    assert sorted(batches) == in_order

  def test_statistics_count_at_the_echo(self, native_ops):
    stats = tfecho.Stats()
    pipeline = Pipeline(RANGE(20), batch_size=4)
    flat(pipeline.dataset(echo_after="decode", factor=2, stats=stats))
    assert (stats.read, stats.consumed, stats.emitted) == (20, 20, 40)


class TestDoubles:
  """No batch holds an element twice."""

  @pytest.mark.parametrize("echo_after", ["read", "decode", "augment"])
  @pytest.mark.parametrize("factor", [2, 2.5, 4])
  @pytest.mark.parametrize("batch_size", [32, 200])
  def test_no_batch_holds_an_element_twice_by_default(
    self, native_ops, echo_after, factor, batch_size
  ):
    pipeline = Pipeline(RANGE(3000), read=abs, batch_size=batch_size)
    batches = values(
      pipeline.dataset(
        echo_after=echo_after, factor=factor, implementation="native"
      )
    )
    assert sum(map(len, batches)) == 3000 * factor
    assert all(len(set(batch)) == len(batch) for batch in batches)

  @pytest.mark.parametrize("kind", ["random", "variable"])
  def test_nor_where_the_factor_is_not_known_in_advance(self, native_ops, kind):
    factor = 2.5 if kind == "random" else tfecho.factor_variable(3)
    dataset = Pipeline(RANGE(3000), batch_size=32).dataset(
      echo_after="decode",
      factor=factor,
      rounding="random" if kind == "random" else "even",
      implementation="native",
    )
    # Two epochs, the seam between them included.
    batches = values(dataset.take(500))
    assert all(len(set(batch)) == 32 for batch in batches)

  def test_without_the_buffer_every_batch_does(self, implementation):
    pipeline = Pipeline(RANGE(64), batch_size=8)
    dataset = pipeline.dataset(
      echo_after="decode",
      factor=2,
      echo_buffer=0,
      implementation=implementation,
    )
    assert all(len(set(batch)) == 4 for batch in values(dataset))

  def test_without_the_native_operations_copies_are_still_shuffled(self):
    pipeline = Pipeline(RANGE(3000), batch_size=32, seed=0)
    batches = values(
      pipeline.dataset(echo_after="decode", factor=4, implementation="graph")
    )
    distinct = np.mean([len(set(batch)) for batch in batches])
    # 32 draws from 512 elements; without a shuffle there would be 8.
    assert 30 < distinct < 32


class TestOrder:
  """What `seed` and `shuffle_buffer` decide."""

  def test_without_a_shuffle_and_an_echo_the_source_keeps_its_order(self):
    dataset = Pipeline(RANGE(7), batch_size=3).dataset()
    assert values(dataset) == [[0, 1, 2], [3, 4, 5], [6]]

  def test_the_remainder_is_dropped_if_asked(self):
    dataset = Pipeline(RANGE(7), batch_size=3, drop_remainder=True).dataset()
    assert values(dataset) == [[0, 1, 2], [3, 4, 5]]

  def test_fresh_elements_come_in_the_same_order_with_and_without_an_echo(
    self, implementation
  ):
    pipeline = Pipeline(RANGE(50), batch_size=5, shuffle_buffer=20, seed=3)
    echoed = pipeline.dataset(
      echo_after="augment",
      factor=2,
      echo_buffer=0,
      implementation=implementation,
    )
    assert list(dict.fromkeys(flat(echoed))) == flat(pipeline.dataset())

  def test_the_seed_decides_and_epochs_differ(self, implementation):
    def two_epochs(seed):
      pipeline = Pipeline(
        RANGE(100), augment=noisy, batch_size=4, shuffle_buffer=20, seed=seed
      )
      dataset = pipeline.dataset(
        echo_after="decode",
        factor=2.5,
        rounding="random",
        repeat=False,
        implementation=implementation,
      )
      return flat(dataset), flat(dataset)

    first = two_epochs(1)
    assert first == two_epochs(1)
    assert first != two_epochs(2)
    assert first[0] != first[1]

  def test_every_repetition_of_an_endless_dataset_has_its_own_order(self):
    pipeline = Pipeline(RANGE(50), batch_size=50, shuffle_buffer=50, seed=0)
    first, second = values(pipeline.dataset(repeat=True).take(2))
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second


def noisy(element, seed):
  noise = tf.random.stateless_uniform([], seed, dtype=tf.float64)
  return tf.cast(element, tf.float64) + noise / 2


class TestAugment:
  """Where the seeds of `augment` come from, and how it is called."""

  def augmented(self, echo_after, **arguments):
    """Returns the distinct results for every element, in 20 elements."""
    pipeline = Pipeline(
      RANGE(20), read=abs, augment=noisy, batch_size=4, **arguments
    )
    results = collections.defaultdict(set)
    for value in flat(pipeline.dataset(echo_after=echo_after, factor=3)):
      results[int(value)].add(value)
    return [results[i] for i in range(20)]

  @pytest.mark.parametrize("echo_after", ["read", "decode"])
  def test_copies_are_augmented_differently(self, echo_after):
    assert [len(r) for r in self.augmented(echo_after)] == [3] * 20

  @pytest.mark.parametrize("echo_after", ["augment", "batch"])
  def test_copies_of_what_was_augmented_are_alike(self, echo_after):
    assert [len(r) for r in self.augmented(echo_after)] == [1] * 20

  def test_every_epoch_augments_anew(self):
    pipeline = Pipeline(RANGE(9), augment=noisy, batch_size=4, seed=0)
    dataset = pipeline.dataset()
    first, second = flat(dataset), flat(dataset)
    assert [int(x) for x in first] == [int(x) for x in second]
    assert not set(first) & set(second)

  def test_shards_augment_differently(self):
    def noise(index):
      source = tf.data.Dataset.from_tensors(0).repeat(40)
      pipeline = Pipeline(
        source,
        augment=noisy,
        batch_size=4,
        num_shards=2,
        shard_index=index,
        seed=0,
      )
      return set(flat(pipeline.dataset()))

    assert not noise(0) & noise(1)

  def test_seeds_fit_the_stateless_operations(self):
    specs = []

    def augment(element, seed):
      specs.append((seed.shape, seed.dtype))
      image = tf.fill([8, 8, 3], tf.cast(element, tf.uint8))
      return tf.image.stateless_random_crop(image, [4, 4, 3], seed)

    dataset = Pipeline(RANGE(4), augment=augment, batch_size=2).dataset()
    assert specs == [([2], tf.int64)]
    assert dataset.element_spec.shape.as_list() == [None, 4, 4, 3]

  def test_a_seed_that_is_bound_already_stays_as_it_is(self):
    augment = functools.partial(noisy, seed=(1, 2))
    dataset = Pipeline(RANGE(4), augment=augment, batch_size=4).dataset()
    assert values(dataset) == [[float(noisy(i, (1, 2))) for i in range(4)]]

  def test_a_function_that_asks_for_no_seed_is_called_without_one(self):
    dataset = Pipeline(RANGE(4), augment=tf.square, batch_size=2).dataset()
    assert values(dataset) == [[0, 1], [4, 9]]

  def test_control_flow_on_tensors_works_as_in_map(self):
    def augment(element, seed):
      del seed
      if element > 1:
        return -element
      return element

    dataset = Pipeline(RANGE(4), augment=augment, batch_size=4).dataset()
    assert values(dataset) == [[0, 1, -2, -3]]

  @pytest.mark.parametrize(
    "structure",
    [
      lambda i: i,
      lambda i: (i,),
      lambda i: (i, -i),
      lambda i: {"x": i, "y": (i,)},
      lambda i: Point(i, -i),
      lambda i: ((i, i), {"y": i}),
    ],
    ids=["scalar", "one-tuple", "pair", "dict", "named tuple", "nested"],
  )
  def test_elements_are_unpacked_as_map_does_it(self, structure):
    seen = []

    def stage(*arguments, **seeds):
      assert set(seeds) <= {"seed"}
      seen.append(tf.nest.map_structure(lambda x: x.dtype, arguments))
      return arguments[0]

    def augment(*arguments, seed):
      return stage(*arguments, seed=seed)

    source = RANGE(4).map(structure)
    source.map(stage)
    Pipeline(source, decode=stage, batch_size=2).dataset()
    Pipeline(source, augment=augment, batch_size=2).dataset()
    expected, *others = seen
    assert others == [expected, expected]
    assert [type(part) for part in others[1]] == [type(p) for p in expected]


class TestSource:
  """What a pipeline can start from, and how workers share it."""

  @pytest.mark.parametrize("as_name", [str, pathlib.Path])
  def test_file_names_are_read(self, tmp_path, as_name):
    names = []
    for text in ("one", "two", "three"):
      path = tmp_path / text
      path.write_text(text)
      names.append(as_name(path))
    pipeline = Pipeline(names, read=tf.io.read_file, batch_size=2)
    assert values(pipeline.dataset()) == [[b"one", b"two"], [b"three"]]

  @pytest.mark.parametrize(
    "n, num_shards", [(12, 3), (13, 3), (2, 3), (0, 2), (5, 1)]
  )
  def test_shards_decode_nothing_twice_and_miss_nothing(
    self, implementation, n, num_shards
  ):
    calls = Calls()
    everything = []
    for index in range(num_shards):
      pipeline = calls.pipeline(
        RANGE(n),
        batch_size=2,
        shuffle_buffer=4,
        num_shards=num_shards,
        shard_index=index,
      )
      everything += flat(
        pipeline.dataset(
          echo_after="augment", factor=2, implementation=implementation
        )
      )
    assert sorted(everything) == sorted(2 * list(range(n)))
    assert calls.counts().get("decode", 0) == n

  def test_an_input_context_says_which_shard_this_is(self):
    context = tf.distribute.InputContext(
      num_input_pipelines=3, input_pipeline_id=1, num_replicas_in_sync=3
    )
    pipeline = Pipeline(RANGE(10), batch_size=2, input_context=context)
    assert values(pipeline.dataset()) == [[1, 4], [7]]

  def test_a_strategy_calls_it_with_its_context(self, implementation):
    def batches(context):
      pipeline = Pipeline(RANGE(4), batch_size=2, input_context=context)
      return pipeline.dataset(
        echo_after="batch", factor=2, implementation=implementation
      )

    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    dataset = strategy.distribute_datasets_from_function(batches)
    assert values(dataset) == [[0, 1], [0, 1], [2, 3], [2, 3]]

  @pytest.mark.parametrize("num_shards, policy", [(2, "OFF"), (1, "AUTO")])
  def test_only_explicit_shards_turn_automatic_sharding_off(
    self, implementation, num_shards, policy
  ):
    dataset = Pipeline(RANGE(8), batch_size=2, num_shards=num_shards).dataset(
      echo_after="decode", factor=2, implementation=implementation
    )
    distribute = dataset.options().experimental_distribute
    assert distribute.auto_shard_policy.name == policy


class TestCardinality:
  """How many batches there are, announced and real."""

  @pytest.mark.parametrize("echo_after", [None, *PLACES])
  @pytest.mark.parametrize("factor", [2, 2.5, 7 / 3])
  @pytest.mark.parametrize("drop_remainder", [False, True])
  def test_a_pass_has_the_announced_number_of_batches(
    self, implementation, drop_remainder, factor, echo_after
  ):
    echo = {}
    if echo_after is not None:
      echo = {"echo_after": echo_after, "factor": factor}
    pipeline = Pipeline(
      RANGE(13), read=abs, batch_size=4, drop_remainder=drop_remainder
    )
    dataset = pipeline.dataset(**echo, implementation=implementation)
    assert len(values(dataset)) == len(dataset)
    assert len(dataset) == pipeline.steps_per_epoch(**echo)

  @pytest.mark.parametrize(
    # What a source of 8 elements becomes, and one of an unknown number.
    "rounding, repeat, finite, unknown",
    [
      ("even", None, 5, UNKNOWN),
      ("even", False, 5, UNKNOWN),
      ("even", True, ENDLESS, ENDLESS),
      ("random", None, ENDLESS, ENDLESS),
      ("random", True, ENDLESS, ENDLESS),
      ("random", False, UNKNOWN, UNKNOWN),
    ],
  )
  def test_it_is_known_or_endless_unless_asked_for_a_random_pass(
    self, implementation, rounding, repeat, finite, unknown
  ):
    def cardinality(source):
      dataset = Pipeline(source, batch_size=4).dataset(
        echo_after="decode",
        factor=2.5,
        rounding=rounding,
        repeat=repeat,
        implementation=implementation,
      )
      return int(dataset.cardinality())

    assert cardinality(RANGE(8)) == finite
    assert cardinality(RANGE(8).filter(lambda i: i >= 0)) == unknown

  def test_an_endless_source_stays_endless(self):
    dataset = Pipeline(RANGE(3).repeat(), batch_size=2).dataset()
    assert dataset.cardinality() == ENDLESS

  def test_an_empty_source_makes_no_batch(self, implementation):
    dataset = Pipeline(RANGE(0), batch_size=2).dataset(
      echo_after="decode", factor=2, implementation=implementation
    )
    assert values(dataset) == []

  def test_an_epoch_goes_by_the_present_value_of_a_variable(self):
    pipeline = Pipeline(RANGE(100), batch_size=10)
    factor = tfecho.factor_variable(2.3)
    assert pipeline.steps_per_epoch(echo_after="decode", factor=factor) == 23
    factor.assign(4)
    assert pipeline.steps_per_epoch(echo_after="batch", factor=factor) == 40

  def test_an_epoch_is_counted_from_the_arguments_of_the_dataset(self):
    pipeline = Pipeline(RANGE(100), batch_size=10)
    echo = {"echo_after": "decode", "factor": 2.5, "rounding": "random"}
    assert pipeline.steps_per_epoch(**echo, echo_buffer=64) == 25

  @pytest.mark.parametrize(
    ("echo", "message"),
    [
      ({"factor": 2, "echo_buffer": 9}, "`echo_buffer` .* 20 .*9"),
      ({"factor": 2, "rounding": "up"}, "`rounding` .*'up'"),
      ({"factor": 0.5}, "`factor` .*0.5"),
      ({"max_factor": 0}, "`max_factor` .*0"),
      ({"max_factor": "x"}, "`max_factor` .*'x'"),
      ({"max_factor": 4, "echo_buffer": 0}, "`echo_buffer` .* 0 with"),
      ({"max_factor": 4, "echo_buffer": 9}, "`echo_buffer` .* 20 .*9"),
      ({"max_factor": 4, "rounding": "random"}, "`rounding` needs .*random"),
      ({"echo_after": None, "echo_buffer": 64}, "`echo_buffer` needs .*64"),
      ({"echo_after": None, "rounding": "random"}, "`rounding` needs .*random"),
    ],
  )
  def test_what_makes_no_dataset_makes_no_epoch(self, echo, message):
    pipeline = Pipeline(RANGE(100), batch_size=10)
    for method in (pipeline.dataset, pipeline.steps_per_epoch):
      with pytest.raises(ValueError, match=message):
        method(**{"echo_after": "decode", **echo})

  @pytest.mark.parametrize("drop_remainder, size", [(True, 4), (False, None)])
  def test_an_echo_leaves_the_structure_of_batches_as_it_is(
    self, implementation, drop_remainder, size
  ):
    source = RANGE(8).map(lambda i: {"x": tf.cast([i, i], tf.float32)})
    pipeline = Pipeline(source, batch_size=4, drop_remainder=drop_remainder)
    spec = {"x": tf.TensorSpec([size, 2], tf.float32)}
    assert pipeline.dataset().element_spec == spec
    for place in PLACES[1:]:
      dataset = pipeline.dataset(
        echo_after=place, factor=2, implementation=implementation
      )
      assert dataset.element_spec == spec


class TestWords:
  """What a pipeline says about itself."""

  def test_it_prints_a_line_for_every_stage(self):
    def crop(image, seed):
      return tf.image.stateless_random_crop(image, [4, 4, 3], seed)

    pipeline = Pipeline(
      RANGE(12_000),
      read=tf.io.read_file,
      augment=crop,
      batch_size=32,
      shuffle_buffer=10_000,
      num_shards=2,
      shard_index=1,
    )
    assert str(pipeline) == (
      "source   6,000 elements\n"
      "shard    1 of 2\n"
      "shuffle  among 10,000\n"
      "read     read_file\n"
      "augment  crop, with seeds\n"
      "batch    32"
    )

  @pytest.mark.parametrize(
    "batch_size, expected",
    [(32, "512 fresh elements, 2,048 bytes"), (200, "800 fresh elements, 3,2")],
  )
  def test_the_log_says_what_the_buffer_holds(
    self, caplog, batch_size, expected
  ):
    caplog.set_level(logging.INFO, logger="tfecho")
    source = RANGE(8).map(lambda i: tf.cast(i, tf.int32))
    pipeline = Pipeline(source, batch_size=batch_size)
    pipeline.dataset(echo_after="decode", factor=2, implementation="graph")
    assert expected in caplog.text

  def test_it_says_so_where_the_size_is_not_known(self, caplog):
    caplog.set_level(logging.INFO, logger="tfecho")
    pipeline = Pipeline(["name"], read=tf.io.read_file, batch_size=2)
    pipeline.dataset(echo_after="read", factor=2, implementation="graph")
    assert "512 fresh elements, of unknown size" in caplog.text


class TestErrors:
  """Bad input is refused where the pipeline is built."""

  @pytest.mark.parametrize(
    "arguments, message",
    [
      ({"source": 3}, "`source` must be .* got 3"),
      ({"source": "name"}, "`source` must be .* got 'name'"),
      ({"source": []}, r"`source` must be .* got \[\]"),
      ({"source": ["name", 3]}, r"`source` must be .* got \['name', 3\]"),
      ({"source": ["name", *range(999)]}, r"got \['name', 0, 1, .*\.\.\.\]$"),
      ({"read": 1}, "`read` must be a function or None, got 1"),
      ({"decode": "x"}, "`decode` must be a function or None, got 'x'"),
      ({"augment": []}, r"`augment` must be a function or None, got \[\]"),
      ({"batch_size": 0}, "`batch_size` must be an int of at least 1, got 0"),
      ({"batch_size": 2.0}, "`batch_size` must be .* got 2.0"),
      ({"batch_size": True}, "`batch_size` must be .* got True"),
      ({"shuffle_buffer": 0}, "`shuffle_buffer` must be .* got 0"),
      ({"drop_remainder": "x"}, "`drop_remainder` must be .* got 'x'"),
      ({"seed": -1}, "`seed` must be an int of at least 0, got -1"),
      ({"seed": "x"}, "`seed` must be an int of at least 0, got 'x'"),
      ({"num_shards": 0}, "`num_shards` must be .* got 0"),
      ({"shard_index": -1}, "`shard_index` must be .* got -1"),
      ({"shard_index": 1}, "`shard_index` must be below `num_shards`=1, got 1"),
      (
        {"num_shards": 2, "input_context": tf.distribute.InputContext()},
        "leave out `num_shards` and `shard_index`, got 2 and 0",
      ),
    ],
  )
  def test_of_the_pipeline(self, arguments, message):
    arguments = {"source": RANGE(8), "batch_size": 2, **arguments}
    with pytest.raises(ValueError, match=message):
      Pipeline(**arguments)

  @pytest.mark.parametrize(
    "arguments, message",
    [
      ({"echo_after": "shuffle"}, "`echo_after` must be .* got 'shuffle'"),
      ({"echo_after": "read"}, '`echo_after`="read" needs a `read` stage'),
      ({"echo_after": None}, "`echo_after` and .* go together, got None"),
      ({"factor": None}, "go together, got 'decode' and None"),
      ({"factor": 0.5}, "`factor` must be .* at least 1, got 0.5"),
      ({"rounding": "up"}, "`rounding` must be one of .* got 'up'"),
      ({"implementation": "fast"}, "`implementation` must be .* got 'fast'"),
      ({"echo_buffer": 7}, "`echo_buffer` must be 0 or at least 8 .* got 7"),
      ({"echo_buffer": -1}, "`echo_buffer` must be .* got -1"),
      ({"echo_buffer": 9.5}, "`echo_buffer` must be .* got 9.5"),
      (
        {"echo_after": "batch", "echo_buffer": 1},
        "`echo_buffer` must be 0 or at least 2 batches, got 1",
      ),
      ({"stats": 1}, "`stats` must be a `tfecho.Stats`"),
      ({"repeat": "x"}, "`repeat` must be True or False, got 'x'"),
    ],
  )
  def test_of_the_dataset(self, arguments, message):
    pipeline = Pipeline(RANGE(8), batch_size=4)
    arguments = {
      "echo_after": "decode",
      "factor": 2,
      "implementation": "graph",
      **arguments,
    }
    with pytest.raises(ValueError, match=message):
      pipeline.dataset(**arguments)

  @pytest.mark.parametrize(
    "arguments",
    [{"rounding": "random"}, {"echo_buffer": 8}, {"stats": object()}],
    ids=lambda arguments: next(iter(arguments)),
  )
  def test_of_what_goes_with_an_echo_only(self, arguments):
    (argument,) = arguments
    with pytest.raises(ValueError, match=f"`{argument}` needs `echo_after`"):
      Pipeline(RANGE(8), batch_size=4).dataset(**arguments)

  @pytest.mark.parametrize(
    "argument, function",
    [
      ("read", tf.io.read_file),  # takes no label
      ("decode", lambda name, label: None),
      ("augment", lambda name: name),
      ("mix", lambda name, label, seed: name.no_such_attribute),
    ],
  )
  def test_of_a_stage_that_does_not_take_its_elements(self, argument, function):
    source = tf.data.Dataset.from_tensor_slices((["a.jpg", "b.jpg"], [0, 1]))
    pipeline = Pipeline(source, batch_size=2, **{argument: function})
    message = f"`{argument}` failed on elements of .*string.*int32"
    with pytest.raises(ValueError, match=message):
      pipeline.dataset()

  @pytest.mark.parametrize(
    "source, message",
    [
      (RANGE(8).repeat(), "`source` is endless"),
      (RANGE(8).filter(lambda i: i > 1), "`source` .* know .*assert_cardin"),
      (RANGE(3), "`source` has 3 elements .* no batch of `batch_size` 4"),
    ],
    ids=["endless", "unknown", "too few"],
  )
  def test_of_epochs_that_cannot_be_counted(self, source, message):
    pipeline = Pipeline(source, batch_size=4, drop_remainder=True)
    with pytest.raises(ValueError, match=message):
      pipeline.steps_per_epoch()

  def test_the_message_tells_how_to_count_an_unknown_source(self):
    source = RANGE(8).filter(lambda i: i >= 0)
    source = source.apply(tf.data.experimental.assert_cardinality(8))
    pipeline = Pipeline(source, batch_size=4)
    assert pipeline.steps_per_epoch(echo_after="decode", factor=2) == 4
