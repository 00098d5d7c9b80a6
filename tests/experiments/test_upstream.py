import tensorflow as tf

from experiments import upstream as upstream_module
from experiments.upstream import Upstream


def _keys(count):
  return tf.data.Dataset.range(100, 100 + count).enumerate()


def test_every_example_that_is_read_is_counted_once():
  upstream = Upstream()
  read = upstream.wrap(lambda key: key * 2)
  data = _keys(10).map(read, num_parallel_calls=4)
  assert list(data.as_numpy_iterator()) == [(i, 200 + 2 * i) for i in range(10)]
  assert upstream.read == 10


def test_what_a_batch_takes_counts_as_read():
  upstream = Upstream()
  options = tf.data.Options()
  # Else TensorFlow adds a prefetch, and turns the map into a parallel one.
  options.autotune.enabled = False
  options.experimental_optimization.inject_prefetch = False
  options.experimental_optimization.map_parallelization = False
  data = _keys(100).map(upstream.wrap(lambda key: key)).batch(8)
  next(iter(data.with_options(options)))
  assert upstream.read == 8


def test_the_stage_keeps_shapes_and_does_not_stop_a_checkpoint():
  upstream = Upstream()
  data = _keys(10).map(upstream.wrap(lambda key: key))
  assert data.element_spec[0] == tf.TensorSpec([], tf.int64)
  iterator = iter(data)
  next(iterator)
  tf.train.Checkpoint(iterator=iterator).write("ram:///upstream")


def test_requests_queue_for_the_link_and_free_time_is_not_saved_up(
  monkeypatch,
):
  class Clock:
    now = 50.0
    slept = []

    def perf_counter(self):
      return self.now

    def sleep(self, seconds):
      self.slept.append(seconds)

  clock = Clock()
  monkeypatch.setattr(upstream_module, "time", clock)
  upstream = Upstream(seconds=2.0)
  stage = upstream.wrap(lambda key: key)
  for now in (50.0, 50.0, 51.0, 90.0):  # the last comes long after the queue
    clock.now = now
    stage(tf.constant(0, tf.int64), tf.constant(0))
  assert clock.slept == [2.0, 4.0, 5.0, 2.0]
