"""Pipelines of which a part runs on the workers of a tf.data service."""

import collections
import math

import pytest
import tensorflow as tf
from iterators import values
from transformations import USES, each_of, each_use

service = tf.data.experimental.service
RANGE = tf.data.Dataset.range
OFF, DYNAMIC = service.ShardingPolicy.OFF, service.ShardingPolicy.DYNAMIC
WORKERS = 2

# A worker can't read a variable of the process that made the pipeline.
CONSTANT = {
  name: use for name, use in USES.items() if name != "echo by a variable"
}


@pytest.fixture(scope="module")
def served():
  """A function that has a dataset served by two workers in this process."""
  dispatcher = service.DispatchServer()
  workers = [
    service.WorkerServer(
      service.WorkerConfig(
        dispatcher_address=dispatcher.target.split("://")[1],
        heartbeat_interval_ms=50,
      )
    )
    for _ in range(WORKERS)
  ]

  def served(dataset, policy):
    return dataset.apply(service.distribute(policy, dispatcher.target))

  yield served
  for server in (*workers, dispatcher):
    server._stop()


@each_of(CONSTANT)
def test_every_worker_runs_the_whole_pipeline(use, implementation, served):
  emitted = values(served(use.apply(RANGE(8), implementation), OFF))
  expected = use.emits(range(8)) * WORKERS
  assert collections.Counter(emitted) == collections.Counter(expected)


@each_of(CONSTANT, ["native"])
def test_workers_that_share_the_input_repeat_each_element_as_often(
  use, implementation, served
):
  """Which of them takes an element, timing decides."""
  emitted = values(served(use.apply(RANGE(8), implementation), DYNAMIC))
  counts = collections.Counter(emitted)
  assert set(counts) == set(range(8))
  least, most = math.floor(use.factor), math.ceil(use.factor)
  assert least <= min(counts.values()) <= max(counts.values()) <= most


@each_use
def test_what_workers_made_can_be_echoed(use, implementation, served):
  data = use.apply(served(RANGE(8).map(tf.negative), DYNAMIC), implementation)
  counts = collections.Counter(values(data))
  assert set(counts) == set(range(0, -8, -1))
  assert sum(counts.values()) == len(use.emits(range(8)))


def test_workers_that_share_the_input_need_the_native_echo(served):
  """The graph announces the elements of the whole input to each of them."""
  data = USES["echo"].apply(RANGE(8), "graph")
  with pytest.raises(tf.errors.FailedPreconditionError, match="expected to"):
    values(served(data, DYNAMIC))


def test_a_variable_stays_in_its_process(served, native_ops):
  data = USES["echo by a variable"].apply(RANGE(8), "native")
  with pytest.raises(tf.errors.NotFoundError, match="echoing_factor"):
    values(served(data, OFF))
