"""How long it takes to stop a pipeline whose upstream gives nothing more.

    seconds("deleted", "echo_on_stall")
    seconds("cancelled", "prefetch")

Upstream gives one element and then sleeps, in TensorFlow, so that it can be
told to stop.
"""

import time

import tensorflow as tf

import tfecho
from experiments.benchmark import drive

TRANSFORMATIONS = {
  "echo_on_stall": lambda ds: ds.apply(tfecho.echo_on_stall(8, buffer_size=2)),
  "prefetch": lambda ds: ds.prefetch(2),
}

_HOURS_IN_MICROSECONDS = 10**10
_PAUSE_SECONDS = 0.1  # until whatever goes on in the background blocks


def seconds(how, name):
  """Returns the seconds that stopping takes.

  Args:
    how: One of `WAYS`.
    name: One of `TRANSFORMATIONS`.
  """
  dataset = drive.without_injected_prefetch(
    _one_then_asleep().apply(TRANSFORMATIONS[name])
  )
  options = tf.data.Options()
  options.autotune.enabled = False  # which takes half a second to stop, too
  held = [iter(dataset.with_options(options))]
  next(held[0])
  time.sleep(_PAUSE_SECONDS)
  return WAYS[how](held)


def _deleted(held):
  """The one who asked has lost interest."""
  start = time.perf_counter()
  held.clear()
  return time.perf_counter() - start


def _cancelled(held):
  """An error next to it stops a step that waits for an element."""
  [iterator] = held
  failed = []

  def fail():
    time.sleep(_PAUSE_SECONDS)
    failed.append(time.perf_counter())
    raise ValueError("stop")

  @tf.function
  def step():
    return next(iterator), tf.numpy_function(fail, [], tf.int64)

  try:
    step()
  except tf.errors.OpError:
    return time.perf_counter() - failed[0]
  raise RuntimeError("The step was not stopped.")


WAYS = {"deleted": _deleted, "cancelled": _cancelled}


def _one_then_asleep():
  numbers = tf.data.Dataset.range(10)
  asleep = tf.data.experimental.from_variant(
    tf.raw_ops.SleepDataset(
      input_dataset=tf.data.experimental.to_variant(numbers),
      sleep_microseconds=_HOURS_IN_MICROSECONDS,
      output_types=[tf.int64],
      output_shapes=[[]],
    ),
    numbers.element_spec,
  )
  return numbers.take(1).concatenate(asleep)
