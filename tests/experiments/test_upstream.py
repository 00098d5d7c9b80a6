import numpy as np
import pytest
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
  # Else TensorFlow adds a prefetch, makes the map parallel, or one with the
  # batch, which starts the next batch in the background.
  options.autotune.enabled = False
  options.experimental_optimization.inject_prefetch = False
  options.experimental_optimization.map_and_batch_fusion = False
  options.experimental_optimization.map_parallelization = False
  data = _keys(100).map(upstream.wrap(lambda key: key)).batch(8)
  next(iter(data.with_options(options)))
  assert upstream.read == 8


def test_the_stage_keeps_shapes_and_does_not_stop_a_checkpoint(tmp_path):
  upstream = Upstream()
  data = _keys(10).map(upstream.wrap(lambda key: key))
  assert data.element_spec[0] == tf.TensorSpec([], tf.int64)
  iterator = iter(data)
  next(iterator)
  tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "upstream"))


class Clock:
  """Stands for the module `time`; sleeping takes none of it."""

  def __init__(self):
    self.now = 50.0
    self.slept = []

  def perf_counter(self):
    return self.now

  def sleep(self, seconds):
    self.slept.append(seconds)


@pytest.fixture
def clock(monkeypatch):
  clock = Clock()
  monkeypatch.setattr(upstream_module, "time", clock)
  return clock


def _read(upstream, times=1):
  stage = upstream.wrap(lambda key: key)
  for _ in range(times):
    stage(tf.constant(0, tf.int64), tf.constant(0))


def test_requests_queue_for_the_link_and_free_time_is_not_saved_up(clock):
  upstream = Upstream(seconds=2.0)
  for now in (50.0, 50.0, 51.0, 90.0):  # the last comes long after the queue
    clock.now = now
    _read(upstream)
  assert clock.slept == [2.0, 4.0, 5.0, 2.0]


def test_it_is_busy_while_there_are_requests_however_many(clock):
  upstream = Upstream(seconds=2.0)
  assert upstream.busy_seconds == 0
  # As the pipeline calls it, from several threads.
  upstream._ask()
  clock.now += 1
  upstream._ask()
  clock.now += 1
  upstream._answer()
  assert upstream.busy_seconds == 2
  clock.now += 3
  upstream._answer()
  clock.now += 90
  assert upstream.busy_seconds == 5
  upstream._ask()
  clock.now += 1
  assert upstream.busy_seconds == 6


def test_asking_for_the_next_is_a_part_of_being_busy(clock):
  upstream = Upstream(seconds=2.0)
  for pause in (0.0, 0.0005, 3.0):  # the last is one: nobody asks
    clock.now += pause
    upstream._ask()
    clock.now += 2
    upstream._answer()
  assert upstream.busy_seconds == pytest.approx(6.0005)


def test_the_delay_can_change_while_it_is_in_use(clock):
  upstream = Upstream(seconds=2.0)
  _read(upstream)
  upstream.seconds = 5.0
  _read(upstream)
  assert clock.slept == [2.0, 7.0]


def test_a_burst_comes_at_once_after_the_time_of_all_of_it(clock):
  _read(Upstream(seconds=2.0, burst=3), times=6)
  assert clock.slept == [6.0, 6.0, 6.0, 12.0, 12.0, 12.0]


def _delays(clock, upstream, count):
  """How long each of `count` examples occupies the link."""
  del clock.slept[:]
  _read(upstream, times=count)
  return np.diff([0.0, *clock.slept])


# 2,000 draws of relative standard deviation 0.5: that of their mean is 0.011,
# that of their standard deviation below 0.02.
def test_a_jitter_is_the_standard_deviation_over_the_mean(clock):
  delays = _delays(clock, Upstream(seconds=2.0, jitter=0.5), 2_000)
  assert np.mean(delays) / 2.0 == pytest.approx(1, abs=0.05)
  assert np.std(delays) / 2.0 == pytest.approx(0.5, abs=0.08)


def test_a_draw_is_good_for_a_spell(clock):
  delays = _delays(clock, Upstream(seconds=2.0, jitter=0.5, spell=3), 9)
  spells = delays.reshape(3, 3)
  assert spells == pytest.approx(np.repeat(spells[:, :1], 3, axis=1))
  assert len(set(spells[:, 0].round(6))) == 3


def test_the_seed_decides_what_is_drawn(clock):
  first, again, other = (
    tuple(_delays(clock, Upstream(seconds=1.0, jitter=1.0, seed=seed), 3))
    for seed in (1, 1, 2)
  )
  assert first == again
  assert first != other
