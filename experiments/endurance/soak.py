"""Many elements, and many iterators: memory and threads have to stay flat."""

import pathlib
import re
import statistics

import tensorflow as tf

import tfecho
from experiments.benchmark import drive

STRIDE = 1_000
ELEMENT_VALUES = 16  # so that one that is kept shows
_PARTS = 10

TRANSFORMATIONS = {
  "echo": lambda data: data.apply(tfecho.echo(2.5)),
  "shuffle_after_echo": lambda data: data.apply(tfecho.echo(2.5)).apply(
    tfecho.shuffle_after_echo(256, min_distance=64)
  ),
  "echo_on_stall": lambda data: data.apply(
    tfecho.echo_on_stall(4, buffer_size=64)
  ),
}


def elements(name, count):
  """Draws so many elements; returns what that added after the first tenth.

  Args:
    name: One of `TRANSFORMATIONS`.
    count: Elements to draw, in steps of `STRIDE`.

  Returns:
    A dict: `megabytes` and `threads` that were added.
  """
  data = TRANSFORMATIONS[name](_source())
  data = drive.without_injected_prefetch(drive.in_strides(data, STRIDE))
  iterator = iter(data)
  return _added(lambda: next(iterator), count // STRIDE)


def iterators(name, count):
  """Makes and drops so many iterators; returns the same."""
  data = TRANSFORMATIONS[name](_source())

  def make_and_drop():
    iterator = iter(data)
    for _ in range(3):
      next(iterator)

  return _added(make_and_drop, count)


def _source():
  # As in a training; and without tuning, dropping an iterator takes no time.
  options = tf.data.Options()
  options.autotune.enabled = False
  data = tf.data.Dataset.range(2**40).map(
    lambda i: tf.fill([ELEMENT_VALUES], i)
  )
  return data.with_options(options)


def _added(action, times):
  """What the process has more of since a tenth of the repetitions.

  Nine times the median of the nine tenths: what is left behind every time adds
  to each of them, what an allocator sets aside for later only to one.
  """
  statuses = []
  for _ in range(_PARTS):
    for _ in range(times // _PARTS):
      action()
    statuses.append(_status())
  return {
    "megabytes": _growth(statuses, "VmRSS") / 1024,
    "threads": _growth(statuses, "Threads"),
  }


def _growth(statuses, name):
  parts = [
    after[name] - before[name] for before, after in zip(statuses, statuses[1:])
  ]
  return len(parts) * statistics.median(parts)


def _status():
  """What Linux says about this process: kilobytes in memory, and threads."""
  text = pathlib.Path("/proc/self/status").read_text()
  return {
    name: int(re.search(rf"^{name}:\s*(\d+)", text, re.MULTILINE)[1])
    for name in ("VmRSS", "Threads")
  }
