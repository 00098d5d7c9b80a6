"""What Stats counts, and that counting changes nothing."""

import gc
import re
import threading

import pytest
import tensorflow as tf

import tfecho

pytestmark = pytest.mark.usefixtures("native_ops")


def at_once(dataset):
  """Without the prefetch that TensorFlow adds to the end of a pipeline."""
  options = tf.data.Options()
  options.experimental_optimization.inject_prefetch = False
  return dataset.with_options(options)


def counts(stats):
  return stats.read, stats.consumed, stats.emitted


@pytest.mark.parametrize("buffer_size", [0, 1, tf.data.AUTOTUNE])
@pytest.mark.parametrize("factor, emitted", [(1, 10), (2, 20), (2.5, 25)])
def test_a_full_pass_is_counted(buffer_size, factor, emitted):
  stats = tfecho.Stats()
  dataset = tf.data.Dataset.range(10).apply(
    tfecho.echo(factor, buffer_size=buffer_size, stats=stats)
  )
  list(dataset)
  assert counts(stats) == (10, 10, emitted)


@pytest.mark.parametrize("buffer_size", [0, 1, tf.data.AUTOTUNE])
def test_a_full_pass_through_the_shuffle_is_counted(buffer_size):
  stats = tfecho.Stats()
  dataset = (
    tf.data.Dataset.range(10)
    .apply(tfecho.echo(3, buffer_size=buffer_size, stats=stats))
    .apply(tfecho.shuffle_after_echo(4, min_distance=2))
  )
  list(dataset)
  assert counts(stats) == (10, 10, 30)


def test_an_element_is_consumed_with_its_first_copy():
  stats = tfecho.Stats()
  dataset = tf.data.Dataset.range(10).apply(
    tfecho.echo(3, buffer_size=0, stats=stats)
  )
  iterator = iter(at_once(dataset))
  seen = []
  for _ in range(4):
    next(iterator)
    seen.append(counts(stats))
  assert seen == [(1, 1, 1), (1, 1, 2), (1, 1, 3), (2, 2, 4)]


def test_what_waits_in_the_shuffle_is_read_but_not_consumed():
  stats = tfecho.Stats()
  dataset = (
    tf.data.Dataset.range(100)
    .apply(tfecho.echo(3, buffer_size=0, stats=stats))
    .apply(tfecho.shuffle_after_echo(20))
  )
  iterator = iter(at_once(dataset))
  order = [int(next(iterator)) for _ in range(5)]
  assert stats.consumed == len(set(order))
  assert stats.emitted == 5
  assert stats.read >= 20


def test_what_is_read_ahead_counts_as_read():
  gate = threading.Event()
  stats = tfecho.Stats()

  def arrived(x):
    if x == 3:
      gate.set()
    return x

  dataset = tf.data.Dataset.range(10).map(
    lambda x: tf.numpy_function(arrived, [x], tf.int64)
  )
  dataset = dataset.apply(tfecho.echo(100, buffer_size=4, stats=stats))
  iterator = iter(at_once(dataset))
  next(iterator)
  assert gate.wait(timeout=60)
  assert stats.consumed == 1
  assert stats.read >= 3


def test_passes_and_iterators_add_up():
  stats = tfecho.Stats()
  dataset = tf.data.Dataset.range(10).apply(tfecho.echo(2, stats=stats))
  first, second = iter(dataset), iter(dataset)
  list(zip(first, second))
  list(dataset)
  assert counts(stats) == (30, 30, 60)


def test_threads_lose_no_count():
  stats = tfecho.Stats()
  dataset = tf.data.Dataset.range(500).apply(
    tfecho.echo(2, buffer_size=0, stats=stats)
  )
  threads = [
    threading.Thread(target=lambda: list(dataset.batch(100))) for _ in range(8)
  ]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  assert counts(stats) == (4_000, 4_000, 8_000)


def test_a_reset_starts_over():
  stats = tfecho.Stats()
  dataset = tf.data.Dataset.range(3).apply(tfecho.echo(2, stats=stats))
  list(dataset)
  stats.reset()
  assert counts(stats) == (0, 0, 0)
  list(dataset)
  assert counts(stats) == (3, 3, 6)


def test_an_iterator_goes_on_counting_after_a_reset():
  stats = tfecho.Stats()
  dataset = tf.data.Dataset.range(10).apply(
    tfecho.echo(2, buffer_size=0, stats=stats)
  )
  iterator = iter(at_once(dataset))
  for _ in range(3):
    next(iterator)
  stats.reset()
  next(iterator)
  assert counts(stats) == (0, 0, 1)
  assert stats.copies == {2: 1}


def test_what_a_dropped_iterator_counted_stays():
  stats = tfecho.Stats()
  dataset = tf.data.Dataset.range(10).apply(
    tfecho.echo(2, buffer_size=0, stats=stats)
  )
  iterator = iter(at_once(dataset))
  for _ in range(5):
    next(iterator)
  del iterator
  assert counts(stats) == (3, 3, 5)
  assert stats.copies == {2: 2}


def test_an_element_that_failed_was_not_read():
  stats = tfecho.Stats()
  dataset = tf.data.Dataset.range(5).map(
    lambda x: tf.debugging.check_numerics(3.0 / tf.cast(x - 2, tf.float32), "")
  )
  dataset = dataset.apply(tfecho.echo(2, buffer_size=0, stats=stats))
  list(dataset.ignore_errors())
  assert counts(stats) == (4, 4, 8)


def test_counters_are_separate():
  first, second = tfecho.Stats(), tfecho.Stats()
  dataset = (
    tf.data.Dataset.range(3)
    .apply(tfecho.echo(2, stats=first))
    .apply(tfecho.echo(2, stats=second))
  )
  list(dataset)
  assert counts(first) == (3, 3, 6)
  assert counts(second) == (6, 6, 12)


def test_a_pipeline_outlives_its_counters():
  stats = tfecho.Stats()
  dataset = tf.data.Dataset.range(3).apply(tfecho.echo(2, stats=stats))
  iterator = iter(dataset)
  del stats
  gc.collect()
  assert len(list(iterator)) == 6
  assert len(list(dataset)) == 6


def test_counting_does_not_change_the_number_of_elements():
  stats = tfecho.Stats()
  dataset = tf.data.Dataset.range(3).apply(tfecho.echo(2, stats=stats))
  assert len(dataset.apply(tfecho.monitor(stats))) == 6
  endless = tf.data.Dataset.range(3).repeat()
  endless = endless.apply(tfecho.echo(2, stats=stats))
  assert endless.cardinality() == tf.data.INFINITE_CARDINALITY


def test_a_monitor_hands_elements_on_and_counts_requests():
  stats = tfecho.Stats()
  dataset = tf.data.Dataset.range(5).apply(tfecho.monitor(stats))
  assert [int(x) for x in dataset] == [0, 1, 2, 3, 4]
  assert stats.requests == 5
  assert counts(stats) == (0, 0, 0)


def test_nothing_comes_between_the_trainer_and_the_monitor():
  """A prefetch behind it would ask for elements that nobody waits for."""
  stats = tfecho.Stats()
  iterator = iter(
    tf.data.Dataset.range(5).prefetch(2).apply(tfecho.monitor(stats))
  )
  for asked in range(1, 4):
    next(iterator)
    assert stats.requests == asked


@pytest.mark.parametrize(
  "factor, copies",
  [(2, {2: 10}), (2.5, {2: 5, 3: 5}), (63.5, {63: 5, 64: 5}), (200, {200: 10})],
)
def test_copies_are_counted_by_how_many_there_were(factor, copies):
  stats = tfecho.Stats()
  echo = tfecho.echo(factor, stats=stats)
  list(tf.data.Dataset.range(10).apply(echo))
  assert stats.copies == copies
  list(
    tf.data.Dataset.range(10)
    .apply(echo)
    .apply(tfecho.shuffle_after_echo(4))
  )
  assert stats.copies == {n: 2 * count for n, count in copies.items()}
  stats.reset()
  assert stats.copies == {}


def test_an_element_in_use_is_not_among_the_copies_yet():
  stats = tfecho.Stats()
  dataset = tf.data.Dataset.range(10).apply(tfecho.echo(3, stats=stats))
  iterator = iter(at_once(dataset))
  seen = []
  for _ in range(4):
    next(iterator)
    seen.append(stats.copies)
  assert seen == [{}, {}, {3: 1}, {3: 1}]


def test_waiting_and_thinking_are_told_apart():
  """Each pause lies wholly within what is measured, so it is a lower bound."""
  pause = 0.05
  stats = tfecho.Stats()

  def late(x):
    threading.Event().wait(pause)  # The trainer waits for this.
    return x

  dataset = tf.data.Dataset.range(2).map(
    lambda x: tf.numpy_function(late, [x], tf.int64)
  )
  options = tf.data.Options()
  options.autotune.enabled = False  # Else the map runs ahead, in parallel.
  iterator = iter(dataset.apply(tfecho.monitor(stats)).with_options(options))
  next(iterator)
  assert stats.wait_seconds >= pause
  assert stats.think_seconds == 0
  threading.Event().wait(pause)  # The trainer thinks.
  next(iterator)
  assert stats.think_seconds >= pause
  assert stats.wait_seconds >= 2 * pause


def test_a_reset_starts_the_times_over():
  stats = tfecho.Stats()
  dataset = tf.data.Dataset.range(9).apply(tfecho.monitor(stats))
  iterator = iter(dataset)
  for _ in range(3):
    next(iterator)
  assert stats.wait_seconds > 0
  assert stats.think_seconds > 0
  stats.reset()
  assert (stats.requests, stats.wait_seconds, stats.think_seconds) == (0, 0, 0)
  next(iterator)
  assert stats.requests == 1
  assert stats.wait_seconds > 0


def test_threads_lose_no_request_and_no_copy_between_resets():
  """Eight iterators at once, in three rounds."""
  stats = tfecho.Stats()
  dataset = (
    tf.data.Dataset.range(100)
    .apply(tfecho.echo_on_stall(1, buffer_size=8, stats=stats))
    .apply(tfecho.echo(3, stats=tfecho.Stats()))
    .apply(tfecho.monitor(stats))
  )
  for _ in range(3):
    threads = [
      threading.Thread(target=lambda: list(dataset)) for _ in range(8)
    ]
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join()
    assert counts(stats) == (800, 800, 800)
    assert stats.copies == {1: 800}
    assert stats.requests == 2_400
    stats.reset()
    assert counts(stats) == (0, 0, 0)
    assert stats.copies == {}


def test_counting_goes_on_while_another_thread_resets():
  stats = tfecho.Stats()
  dataset = tf.data.Dataset.range(2_000).apply(
    tfecho.echo(2, stats=stats)
  )
  thread = threading.Thread(target=lambda: list(dataset.batch(10)))
  thread.start()
  while thread.is_alive():
    stats.reset()
    assert min(counts(stats)) >= 0
    assert all(elements > 0 for elements in stats.copies.values())
  stats.reset()
  list(dataset)
  assert counts(stats) == (2_000, 2_000, 4_000)


def test_stats_are_refused_by_the_graph_implementation():
  with pytest.raises(ValueError, match="`stats`.*native.*graph"):
    tfecho.echo(2, stats=tfecho.Stats(), implementation="graph")


@pytest.mark.parametrize("stats", [None, 1, object()])
def test_a_monitor_of_nothing_is_refused(stats):
  with pytest.raises(ValueError, match="`stats`"):
    tfecho.monitor(stats)


def test_they_print_what_they_counted():
  stats = tfecho.Stats()
  list(tf.data.Dataset.range(2).apply(tfecho.echo(2, stats=stats)))
  assert "read=2, consumed=2, emitted=4" in repr(stats)
  # By the names by which they are asked for.
  for name in re.findall(r"(\w+)=", repr(stats)):
    assert hasattr(stats, name)
