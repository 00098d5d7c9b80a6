"""Pipelines that echo on stall: the sizes that they choose, and their promises.

What is repeated depends on time, which no test goes by: upstream is held back
by a gate, or only what holds at any timing is asserted.
"""

import collections
import logging
import threading

import keras
import pytest
import tensorflow as tf

import tfecho
from tfecho import Pipeline, stages

pytestmark = pytest.mark.usefixtures("native_ops")

PLACES = ["read", "decode", "augment", "batch"]
BATCH = 4


def pipeline(n):
  return Pipeline(tf.data.Dataset.range(n), read=tf.identity, batch_size=BATCH)


def held_by(gate):
  """A stage that lets an element pass for every permit of `gate`."""

  def hold(x):
    if not gate.acquire(timeout=60):
      gate.release(10_000)  # One failure is enough.
      raise AssertionError("waited for what was never released")
    return x

  return lambda x: tf.ensure_shape(tf.numpy_function(hold, [x], tf.int64), [])


def held_pipeline(gate, **functions):
  """A pipeline whose source gives an element for every permit of `gate`."""
  source = tf.data.Dataset.range(1_000).map(held_by(gate))
  return Pipeline(source, read=tf.identity, batch_size=BATCH, **functions)


@pytest.mark.parametrize("place", PLACES)
def test_every_element_comes_at_least_once_and_at_most_as_often_as_allowed(
  place,
):
  dataset = pipeline(100).dataset(echo_after=place, max_factor=3, repeat=False)
  order = [int(x) for batch in dataset for x in batch]
  counts = collections.Counter(order)
  assert list(dict.fromkeys(order)) == list(range(100))
  assert max(counts.values()) <= 3


@pytest.mark.parametrize(
  "functions", [{}, {"decode": tf.identity, "augment": tf.identity}]
)
@pytest.mark.parametrize("place", PLACES)
def test_what_fills_the_stages_behind_it_does_not_look_like_a_stall(
  place, functions
):
  """Upstream gives just what is asked for before the training starts."""
  gate = threading.Semaphore(0)
  stats = tfecho.Stats()
  dataset = held_pipeline(gate, **functions).dataset(
    echo_after=place, max_factor=100, stats=stats
  )
  batches = iter(dataset)
  gate.release(BATCH)
  next(batches)
  assert stats.emitted == stats.consumed
  gate.release(1_000)


@pytest.mark.parametrize("place", PLACES[:3])
def test_a_stall_puts_no_element_into_a_batch_twice(place):
  """After the warm-up upstream stands still; there is much to choose from."""
  batches_of_warmup = 2 + stages.BATCHES_AHEAD + 2
  gate = threading.Semaphore(BATCH * (batches_of_warmup + 4))
  stats = tfecho.Stats()
  dataset = held_pipeline(gate).dataset(
    echo_after=place, max_factor=100, stats=stats
  )
  batches = iter(dataset)
  for _ in range(30):
    batch = next(batches).numpy()
    assert len(set(batch)) == BATCH
  assert stats.emitted > stats.consumed  # There was a stall.
  gate.release(10_000)


@pytest.mark.parametrize("place", PLACES[:2])
def test_reads_that_wait_leave_a_thread_to_the_stages_behind_the_echo(place):
  gate = threading.Semaphore(100)
  stats = tfecho.Stats()
  examples = Pipeline(
    tf.data.Dataset.range(1_000),
    read=held_by(gate),
    decode=tf.abs,
    augment=tf.abs,
    batch_size=BATCH,
  )
  dataset = examples.dataset(echo_after=place, max_factor=100, stats=stats)
  batches = iter(dataset)
  for _ in range(50):
    next(batches)
  assert stats.consumed <= 100 < stats.emitted
  gate.release(10_000)


def test_threads_of_its_own_make_room_for_what_they_begin(monkeypatch):
  """A parallel map may begin as many calls as there are threads."""
  warmups = []

  def noted(*unused, warmup, **unused_sizes):
    warmups.append(warmup)
    return stages.unchanged

  monkeypatch.setattr(stages, "echo_on_stall", noted)
  for threads in (1, 64):
    options = tf.data.Options()
    options.threading.private_threadpool_size = threads
    source = tf.data.Dataset.range(100).with_options(options)
    for place in ("decode", "read"):
      examples = Pipeline(
        source, read=tf.identity, decode=tf.identity, batch_size=BATCH
      )
      examples.dataset(echo_after=place, max_factor=2)
  none_behind, one_behind, none_behind_many, one_behind_many = warmups
  assert none_behind == none_behind_many
  assert one_behind_many - none_behind_many == 2 * 64 > one_behind - none_behind


@pytest.mark.parametrize(
  "place, echo_buffer, expected",
  [
    ("decode", None, f"{2 * BATCH + 512} elements, {8 * (2 * BATCH + 512):,}"),
    ("decode", 8, f"{2 * BATCH + 8} elements, {8 * (2 * BATCH + 8)} bytes"),
    ("batch", None, f"{2 + 4} elements, {8 * BATCH * 6} bytes"),
  ],
)
def test_the_log_says_how_much_it_may_hold(
  place, echo_buffer, expected, caplog
):
  caplog.set_level(logging.INFO, logger="tfecho")
  examples = Pipeline(
    tf.data.Dataset.range(100), batch_size=BATCH, drop_remainder=True
  )
  examples.dataset(echo_after=place, max_factor=2, echo_buffer=echo_buffer)
  assert f"holds up to {expected}" in caplog.text


def test_it_starts_again_at_the_end_unless_told_otherwise():
  dataset = pipeline(10).dataset(echo_after="decode", max_factor=2)
  assert dataset.cardinality() == tf.data.INFINITE_CARDINALITY


def test_an_epoch_has_the_steps_of_a_pass_without_a_repeat():
  steps = pipeline(10).steps_per_epoch(echo_after="decode", max_factor=8)
  assert steps == pipeline(10).steps_per_epoch() == 3


def test_fit_makes_these_steps():
  examples = Pipeline(
    tf.data.Dataset.range(10),
    decode=lambda x: (tf.ones([3]), tf.cast(x, tf.float32)[None]),
    batch_size=BATCH,
  )
  echo = {"echo_after": "decode", "max_factor": 4}
  model = keras.Sequential([keras.Input([3]), keras.layers.Dense(1)])
  model.compile("sgd", "mse")
  model.fit(
    examples.dataset(**echo),
    steps_per_epoch=examples.steps_per_epoch(**echo),
    epochs=3,
    verbose=0,
  )
  assert int(model.optimizer.iterations) == 9


@pytest.mark.parametrize(
  "arguments, message",
  [
    ({"factor": 2}, "`factor` and `max_factor` exclude each other.*2.*8"),
    ({"echo_after": None}, "go together, got None and 8"),
    ({"max_factor": 0}, "`max_factor`.*0"),
    ({"max_factor": 2.5}, "`max_factor`.*2.5"),
    ({"rounding": "random"}, "`rounding` needs `factor`.*random"),
    ({"echo_buffer": 0}, "`echo_buffer`.*`max_factor`"),
    ({"echo_buffer": BATCH}, "`echo_buffer`.*at least 8.*4"),
    ({"implementation": "graph"}, "`max_factor`.*native.*graph"),
  ],
)
def test_what_cannot_work_is_refused(arguments, message):
  arguments = {"echo_after": "decode", "max_factor": 8, **arguments}
  with pytest.raises(ValueError, match=message):
    pipeline(10).dataset(**arguments)
