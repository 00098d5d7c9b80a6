"""Many elements, and many iterators: memory and threads have to stay flat."""

import pathlib
import re

import tensorflow as tf

import tfecho
from experiments.benchmark import drive

STRIDE = 1_000
ELEMENT_VALUES = 16  # so that one that is kept shows

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
  """What the process has more of, since a tenth of the repetitions."""
  for _ in range(times // 10):
    action()
  before = _status()
  for _ in range(times - times // 10):
    action()
  after = _status()
  return {
    "megabytes": (after["VmRSS"] - before["VmRSS"]) / 1024,
    "threads": after["Threads"] - before["Threads"],
  }


def _status():
  """What Linux says about this process: kilobytes in memory, and threads."""
  text = pathlib.Path("/proc/self/status").read_text()
  return {
    name: int(re.search(rf"^{name}:\s*(\d+)", text, re.MULTILINE)[1])
    for name in ("VmRSS", "Threads")
  }
