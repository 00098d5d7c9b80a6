"""Requests and iterators that are given up while upstream blocks.

No test goes by the clock: upstream is a queue that the test fills, and says
when it is asked for an element.
"""

import gc
import threading

import pytest
import tensorflow as tf
from tensorflow.python.eager import cancellation
from transformations import IMPLEMENTATIONS, echo

import tfecho

PATIENCE = 60  # Seconds after which a test has hung.


class Upstream:
  """The numbers that a test puts into a queue.

  A request for an element of an empty queue waits, and can be cancelled.
  """

  def __init__(self):
    self._queue = tf.queue.FIFOQueue(100, tf.int64, shapes=[()])
    self._asked = threading.Semaphore(0)
    self.dataset = tf.data.Dataset.range(100).map(self._take)

  def put(self, *numbers):
    self._queue.enqueue_many([list(numbers)])

  def await_requests(self, count):
    """Returns when `count` more elements have been asked for."""
    for _ in range(count):
      assert self._asked.acquire(timeout=PATIENCE)

  def _take(self, i):
    note = tf.numpy_function(self._note, [i], [])
    with tf.control_dependencies([note]):
      return self._queue.dequeue()

  def _note(self, i):
    self._asked.release()


def shuffle(dataset, implementation):
  dataset = echo(2, buffer_size=8)(dataset, implementation)
  return dataset.apply(tfecho.shuffle_after_echo(2))


def stalling_echo(dataset, implementation):
  del implementation
  return dataset.apply(tfecho.echo_on_stall(3, buffer_size=8, warmup=100))


def monitored(dataset, implementation):
  del implementation
  return dataset.prefetch(8).apply(tfecho.monitor(tfecho.Stats()))


# All of them read 8 elements ahead.
each_transformation = pytest.mark.parametrize(
  "apply, implementation",
  [
    pytest.param(apply, implementation, id=f"{name}-{implementation}")
    for name, apply, implementations in [
      ("echo", echo(2, buffer_size=8), IMPLEMENTATIONS),
      ("echo by a fraction", echo(2.5, buffer_size=8), IMPLEMENTATIONS),
      ("shuffle", shuffle, IMPLEMENTATIONS),
      ("echo on stall", stalling_echo, ["native"]),
      ("monitor", monitored, ["native"]),
    ]
    for implementation in implementations
  ],
  indirect=["implementation"],
)


def direct(dataset):
  """Without what TensorFlow adds to a pipeline to run it ahead."""
  options = tf.data.Options()
  options.experimental_optimization.inject_prefetch = False
  options.autotune.enabled = False
  return dataset.with_options(options)


def in_thread(function):
  """Runs `function` in a thread; returns a function that awaits its result."""
  results = []

  def run():
    try:
      results.append(function())
    except Exception as error:
      results.append(error)

  thread = threading.Thread(target=run)
  thread.start()

  def result():
    thread.join(timeout=PATIENCE)
    assert not thread.is_alive()
    return results[0]

  return result


@each_transformation
def test_a_request_that_waits_can_be_cancelled(apply, implementation):
  upstream = Upstream()
  iterator = iter(direct(apply(upstream.dataset, implementation)))
  manager = cancellation.CancellationManager()
  request = manager.get_cancelable_function(
    tf.function(iterator.get_next).get_concrete_function()
  )
  result = in_thread(request)
  upstream.await_requests(1)
  manager.start_cancel()
  assert isinstance(result(), tf.errors.CancelledError)


@each_transformation
def test_an_iterator_can_be_dropped_while_upstream_blocks(
  apply, implementation
):
  upstream = Upstream()
  upstream.put(1, 2, 3, 4)
  iterators = [iter(direct(apply(upstream.dataset, implementation)))]
  assert int(next(iterators[0])) in (1, 2)
  upstream.await_requests(5)  # The fifth waits for an element.

  def drop():
    iterators.clear()
    gc.collect()
    return "dropped"

  assert in_thread(drop)() == "dropped"
