"""Pipelines that TensorFlow splits between workers by itself.

Its rewrite walks up from the end of a pipeline to the files. At an operation
that it does not know it gives up, or splits the examples behind the echo
instead, so that every worker reads and decodes all of them. The native
operations are named as versions of operations that it lets pass: these tests
notice when a later TensorFlow looks more closely.
"""

import collections

import pytest
import tensorflow as tf
from decoding import Decoding, write_records
from iterators import values
from tensorflow.python.data.experimental.ops.distribute import (
  _AutoShardDataset,
)
from transformations import (
  each_native_use,
  each_use,
  echo,
  echo_by_variable,
  shuffled_echo,
)

FILES = 4
WORKERS = 2
RECORDS = [[10 * file + i for i in range(3)] for file in range(FILES)]
ALL = sum(RECORDS, [])


@pytest.fixture(scope="module")
def names(tmp_path_factory):
  """Names of files, of which each holds RECORDS."""
  return write_records(tmp_path_factory.mktemp("records"), RECORDS)


def decoded(names, decoding):
  """The records of all files, decoded."""
  files = tf.data.Dataset.from_tensor_slices(names)
  records = files.interleave(tf.data.TFRecordDataset, cycle_length=1)
  return records.map(decoding.decode)


def shards(dataset, policy):
  """Returns a dataset for every worker."""
  options = tf.data.Options()
  options.experimental_distribute.auto_shard_policy = (
    tf.data.experimental.AutoShardPolicy[policy]
  )
  dataset = dataset.with_options(options)
  return [_AutoShardDataset(dataset, WORKERS, i) for i in range(WORKERS)]


@pytest.mark.parametrize("policy", ["FILE", "AUTO"])
@each_native_use
def test_by_file_each_worker_decodes_and_emits_its_own_files_only(
  use, implementation, policy, names
):
  decoding = Decoding()
  dataset = use.apply(decoded(names, decoding), implementation)
  for worker, shard in enumerate(shards(dataset, policy)):
    decoding.counts.clear()
    own = sum(RECORDS[worker::WORKERS], [])
    assert use.comparable(values(shard)) == use.comparable(use.emits(own))
    assert decoding.counts == collections.Counter(own)


@pytest.mark.parametrize("policy", ["FILE", "AUTO"])
@each_native_use
def test_stages_behind_the_echo_change_nothing_about_it(
  use, implementation, policy, names
):
  dataset = use.apply(decoded(names, Decoding()), implementation)
  dataset = dataset.map(tf.identity, num_parallel_calls=2).batch(2)
  dataset = dataset.prefetch(2)
  for worker, shard in enumerate(shards(dataset, policy)):
    emitted = set(values(shard.unbatch()))
    assert emitted == set(sum(RECORDS[worker::WORKERS], []))


@each_use
def test_by_data_every_worker_decodes_everything(
  use, implementation, names
):
  """Copies of one example go to different workers: not what one wants."""
  decoding = Decoding()
  dataset = use.apply(decoded(names, decoding), implementation)
  emitted = []
  for shard in shards(dataset, "DATA"):
    decoding.counts.clear()
    emitted.append(values(shard))
    assert decoding.counts == collections.Counter(ALL)
  expected = use.emits(ALL)
  assert [len(part) for part in emitted] == [
    len(expected[worker::WORKERS]) for worker in range(WORKERS)
  ]
  if use.in_order:
    assert emitted == [expected[worker::WORKERS] for worker in range(WORKERS)]


@each_use
def test_without_sharding_every_worker_gets_everything(
  use, implementation, names
):
  dataset = use.apply(decoded(names, Decoding()), implementation)
  for shard in shards(dataset, "OFF"):
    assert use.comparable(values(shard)) == use.comparable(use.emits(ALL))


@pytest.mark.parametrize(
  "apply",
  [echo(2), shuffled_echo(2, 2)],
  ids=["echo", "shuffle_after_echo"],
)
@pytest.mark.parametrize("policy", ["FILE", "AUTO"])
def test_the_graph_of_a_whole_factor_is_split_by_records(
  apply, policy, names
):
  """Every worker reads all files, but decodes and emits its own records."""
  decoding = Decoding()
  emitted = [
    collections.Counter(values(shard))
    for shard in shards(apply(decoded(names, decoding), "graph"), policy)
  ]
  assert sum(emitted, collections.Counter()) == collections.Counter(ALL * 2)
  assert not emitted[0] & emitted[1]
  assert decoding.counts == collections.Counter(ALL)


@pytest.mark.parametrize(
  "apply",
  [echo(2.5), echo(1.5, rounding="random", seed=1), echo_by_variable(2)],
  ids=["fraction", "random", "variable"],
)
class TestGraphOfOtherFactors:
  """Holds a second source, in which TensorFlow finds no files."""

  def test_cannot_be_split_by_file(self, apply, names):
    dataset = apply(decoded(names, Decoding()), "graph")
    with pytest.raises(tf.errors.NotFoundError, match="shardable source"):
      shards(dataset, "FILE")

  def test_is_split_by_data_instead(self, apply, names):
    emitted = {}
    for policy in ("AUTO", "DATA"):
      dataset = apply(decoded(names, Decoding()), "graph")
      emitted[policy] = [values(shard) for shard in shards(dataset, policy)]
    assert emitted["AUTO"] == emitted["DATA"]
