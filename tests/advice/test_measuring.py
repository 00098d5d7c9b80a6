"""What is measured of real pipelines: that it is there, not how long it took.
"""

import pathlib

import pytest
import tensorflow as tf

import tfecho
from tfecho.advice import measuring
from tfecho.advice.measuring import measure

RANGE = tf.data.Dataset.range


def measured(pipeline, train_step=lambda batch: None):
  return measure(
    pipeline, train_step, seconds=0.01, on_progress=lambda line: None
  )


def examine(source=None, **stages):
  source = RANGE(16) if source is None else source
  return measured(tfecho.Pipeline(source, batch_size=4, **stages))


class TestParts:
  # stages given, places, stages measured
  @pytest.mark.parametrize(
    ("given", "places", "stages"),
    [
      ("", ["decode", "batch"], ["source", "batch"]),
      ("read", ["read", "batch"], ["source", "read", "batch"]),
      ("decode", ["decode", "batch"], ["source", "decode", "batch"]),
      (
        "augment",
        ["decode", "augment", "batch"],
        ["source", "augment", "batch"],
      ),
      (
        "read augment",
        ["read", "augment", "batch"],
        ["source", "read", "augment", "batch"],
      ),
      (
        "read decode augment",
        ["read", "decode", "augment", "batch"],
        ["source", "read", "decode", "augment", "batch"],
      ),
    ],
  )
  def test_every_stage_and_every_place_that_differs_is_measured(
    self, given, places, stages
  ):
    result = examine(**dict.fromkeys(given.split(), tf.identity))
    assert list(result.places) == places
    assert list(result.stages) == stages

  def test_every_place_can_be_passed_to_the_pipeline(self, implementation):
    for given in ({}, {"augment": tf.abs}, {"read": tf.abs}):
      pipeline = tfecho.Pipeline(RANGE(16), batch_size=4, **given)
      for place in measured(pipeline).places:
        pipeline.dataset(
          echo_after=place, factor=2, implementation=implementation
        )

  def test_batches_have_the_shape_that_those_of_the_pipeline_have(self):
    def mix(batch):
      return batch + tf.ones(batch.shape, tf.int64)

    result = examine(mix=mix, drop_remainder=True)
    assert "mix" in result.stages

  def test_all_times_are_positive(self):
    result = examine(decode=tf.square, augment=tf.square)
    costs = [result.step, result.baseline, *result.stages.values()]
    for place in result.places.values():
      costs += [place.upstream, place.downstream]
    assert all(cost.seconds > 0 for cost in costs)
    assert all(cost.cpu_seconds >= 0 for cost in costs)

  def test_more_stages_take_no_less_time(self):
    result = examine(read=tf.square, decode=tf.square, augment=tf.square)
    upstream = [place.upstream.seconds for place in result.places.values()]
    downstream = [place.downstream.seconds for place in result.places.values()]
    assert upstream == sorted(upstream)
    assert downstream == sorted(downstream, reverse=True)
    assert result.step == result.places["batch"].downstream


class TestTraining:
  def test_trains_on_batches_of_the_pipeline(self):
    batches = []
    pipeline = tfecho.Pipeline(RANGE(16), decode=tf.square, batch_size=4)
    measured(pipeline, batches.append)
    squares = [i * i for i in range(16)]
    in_order = {tuple(squares[k : k + 4]) for k in range(0, 16, 4)}
    trained = {tuple(batch.numpy()) for batch in batches}
    assert {len(batch) for batch in trained} == {4}
    assert {x for batch in trained for x in batch} <= set(squares)
    assert in_order <= trained

  def test_keeps_the_structure_of_the_elements(self):
    batches = []
    source = tf.data.Dataset.from_tensor_slices({"x": [1, 2], "y": ["a", "b"]})
    measured(tfecho.Pipeline(source, batch_size=2), batches.append)
    assert all(set(batch) == {"x", "y"} for batch in batches)

  def test_elements_in_memory_are_read_once(self):
    reads = []

    def read(x):
      reads.append(int(x))
      return x

    pipeline = tfecho.Pipeline(
      RANGE(100),
      read=lambda x: tf.ensure_shape(
        tf.numpy_function(read, [x], tf.int64, stateful=False), []
      ),
      batch_size=4,
    )
    parts = measuring._Parts(pipeline)
    before = len(reads)
    for place in parts.places:
      list(parts.downstream(place).take(50))
    assert len(reads) == before

  def test_every_call_of_augment_has_another_seed(self):
    pipeline = tfecho.Pipeline(
      RANGE(4),
      # Of so many numbers that no two of forty are the same by chance.
      augment=lambda x, seed: tf.random.stateless_uniform(
        [], seed, None, None, tf.int64
      ),
      batch_size=4,
    )
    downstream = measuring._Parts(pipeline).downstream("decode")
    drawn = {int(x) for batch in downstream.take(10) for x in batch}
    assert len(drawn) == 40

  def test_an_upstream_error_surfaces(self):
    with pytest.raises(tf.errors.InvalidArgumentError, match="bad record"):
      examine(decode=lambda x: tf.debugging.check_numerics(
        tf.cast(x, tf.float32) / 0.0, "bad record"
      ))

  def test_a_source_without_elements_is_refused(self):
    with pytest.raises(ValueError, match="`pipeline` has no element"):
      examine(RANGE(0))

  def test_a_source_of_less_than_a_batch_is_repeated(self):
    assert examine(RANGE(2)).examples == 2


class TestFacts:
  # source, examples in a pass over it
  @pytest.mark.parametrize(
    ("source", "examples"),
    [
      (RANGE(16), 16),
      (RANGE(16).repeat(), None),
      (RANGE(16).filter(lambda x: x > 3), None),
    ],
    ids=["finite", "endless", "unknown"],
  )
  def test_examples_are_counted_where_that_is_possible(self, source, examples):
    assert examine(source).examples == examples

  # source, maps in it that are serial
  @pytest.mark.parametrize(
    ("source", "maps"),
    [
      (RANGE(8), 0),
      (RANGE(8).map(tf.abs), 1),
      (RANGE(8).map(tf.abs).shuffle(4).map(tf.abs).prefetch(1), 2),
      (RANGE(8).map(tf.abs, num_parallel_calls=2), 0),
      (tf.data.Dataset.zip((RANGE(8).map(tf.abs), RANGE(8).map(tf.abs))), 2),
    ],
    ids=["none", "one", "two", "parallel", "beside each other"],
  )
  def test_serial_maps_in_the_source_are_counted(self, source, maps):
    assert examine(source).serial_maps == maps

  # element, its bytes behind the source, those of a batch of 4
  @pytest.mark.parametrize(
    ("element", "size"),
    [
      (tf.zeros([8, 3], tf.float32), 96),
      ((tf.zeros([8], tf.uint8), tf.constant(1)), 12),
      ({"text": tf.constant(["ab", "cde"])}, 5),
      (tf.constant("abcd"), 4),
    ],
    ids=["floats", "pair", "strings", "string"],
  )
  def test_elements_are_weighed(self, element, size):
    result = examine(tf.data.Dataset.from_tensors(element).repeat(8))
    assert result.places["decode"].element_bytes == size
    assert result.places["batch"].element_bytes == 4 * size

  def test_the_weight_is_the_mean_where_elements_differ(self):
    result = examine(
      RANGE(4),
      read=lambda i: tf.fill([i], 1.0),
      decode=lambda x: tf.pad(x, [[0, 3 - tf.size(x)]]),
    )
    assert result.places["read"].element_bytes == 4 * (0 + 1 + 2 + 3) / 4

  def test_what_has_no_size_has_no_weight(self):
    source = RANGE(8).map(lambda x: tf.data.Dataset.range(x))
    assert measuring._num_bytes(next(iter(source))) is None


class TestSharing:
  def shares(self, source, **stages):
    pipeline = tfecho.Pipeline(source, batch_size=4, **stages)
    parts = measuring._Parts(pipeline)
    return [
      {int(x) for x in parts.source(share).take(24)}
      for share in range(measuring._SHARES)
    ]

  def test_no_two_probes_read_the_same_file(self):
    shares = self.shares(RANGE(24), read=tf.abs)
    assert sum(map(len, shares)) == len(set.union(*shares)) == 24

  def test_records_are_not_skipped(self):
    for share in self.shares(RANGE(24)):
      assert share == set(range(24))

  def test_few_names_are_not_shared_out(self):
    for share in self.shares(RANGE(23), read=tf.abs):
      assert share == set(range(23))

  def test_a_large_shuffle_does_not_have_to_fill(self):
    passed = []

    def count(x):
      passed.append(x)
      return x

    source = RANGE(10_000).map(
      lambda x: tf.ensure_shape(
        tf.numpy_function(count, [x], tf.int64, stateful=False), []
      )
    )
    pipeline = tfecho.Pipeline(source, batch_size=4, shuffle_buffer=10_000)
    data = measuring._Parts(pipeline).source(0)
    passed.clear()
    next(iter(data))
    assert len(passed) < 100


def test_files_are_read(tmp_path):
  names = [tmp_path / f"{i}.txt" for i in range(4)]
  for name in names:
    pathlib.Path(name).write_text("12345")
  result = measured(
    tfecho.Pipeline(names, read=tf.io.read_file, batch_size=2)
  )
  assert result.places["read"].element_bytes == 5


def test_waiting_is_tried_with_more_threads(monkeypatch):
  monkeypatch.setattr(measuring.Cost, "waits", property(lambda cost: True))
  result = examine(read=tf.abs)
  assert result.more_threads.seconds > 0
  assert result.num_threads >= 16


def test_computing_is_not(monkeypatch):
  monkeypatch.setattr(measuring.Cost, "waits", property(lambda cost: False))
  assert examine(read=tf.abs).more_threads is None


def test_progress_is_told_round_by_round():
  lines = []
  pipeline = tfecho.Pipeline(RANGE(16), batch_size=4)
  measure(
    pipeline, lambda batch: None, seconds=0.01, on_progress=lines.append
  )
  assert len(lines) >= 1 + measuring._FEWEST_ROUNDS
