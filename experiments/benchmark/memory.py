"""Peak memory of a shuffle buffer, each measurement in a process of its own.

    python -m experiments.benchmark.memory Dataset.shuffle

prints by how many bytes the pipeline raises the peak of a process that has
already run TensorFlow once. Linux only: the peak is read from `/proc`, since
`getrusage` may report that of the process which started this one.
"""

import functools
import os
import pathlib
import subprocess
import sys

import tensorflow as tf

import tfecho
from experiments.benchmark import drive
from experiments.benchmark.runner import Bound, Case

BUFFER_SIZE = 2_000
FACTOR = 4
IMAGE_BYTES = 150_000

# Makes glibc give freed images back instead of keeping them for later.
TIGHT_MALLOC = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "2"}


def _echoed(**options):
  echo = functools.partial(tfecho.echo, implementation="native", **options)
  return lambda dataset: dataset.apply(echo(FACTOR)).apply(
    tfecho.shuffle_after_echo(BUFFER_SIZE)
  )


PIPELINES = {
  "defaults": _echoed(),
  "buffer_size=0": _echoed(buffer_size=0),
  "Dataset.shuffle": lambda dataset: dataset.shuffle(BUFFER_SIZE),
}


def cases():
  """Against the bytes that must be held, and against `Dataset.shuffle`.

  The first counts what is read ahead of the echo, too; the second compares
  buffers of equal content.
  """
  held_mb = BUFFER_SIZE * IMAGE_BYTES / 1e6
  return [
    Case(
      what=f"peak memory, {BUFFER_SIZE} images shuffled, e = 4, tight malloc",
      unit="MB",
      contenders={
        "defaults": _peak_of("defaults", TIGHT_MALLOC),
        "their size": lambda: lambda: held_mb,
      },
      bounds=[Bound("defaults", "their size", 1.2)],
      max_rounds=3,
    ),
    Case(
      what=f"peak memory, {BUFFER_SIZE} images shuffled, e = 4",
      unit="MB",
      contenders={name: _peak_of(name) for name in PIPELINES},
      bounds=[
        Bound("buffer_size=0", "Dataset.shuffle", 1.0),
        Bound("defaults", "Dataset.shuffle"),
      ],
      max_rounds=3,
    ),
  ]


def _peak_of(pipeline, malloc_settings=None):
  """A contender whose every probe is a process of its own; in MB."""
  environment = {k: v for k, v in os.environ.items() if k not in TIGHT_MALLOC}
  environment.update(malloc_settings or {})

  def probe():
    output = subprocess.run(
      [sys.executable, "-m", __name__, pipeline],
      cwd=pathlib.Path(__file__).parents[2],
      env=environment,
      check=True,
      stdout=subprocess.PIPE,
    ).stdout
    return int(output) / 1e6

  return lambda: probe


def _images(count):
  """`count` elements of `IMAGE_BYTES`, each in newly written memory."""
  return tf.data.Dataset.range(count).map(
    lambda i: tf.fill([IMAGE_BYTES], tf.cast(i, tf.uint8))
  )


def _peak_bytes():
  """The largest resident set that this process has had."""
  for line in pathlib.Path("/proc/self/status").read_text().splitlines():
    if line.startswith("VmHWM:"):
      return 1024 * int(line.split()[1])
  raise RuntimeError("/proc/self/status has no line VmHWM.")


def _drain(dataset):
  for _ in drive.without_injected_prefetch(dataset):
    pass


def main(pipeline):
  """Prints the peak of a pipeline above that of one element, in bytes."""
  # Three times the buffer: filled, kept full by exchange, and drained.
  dataset = PIPELINES[pipeline](_images(3 * BUFFER_SIZE))
  _drain(_images(1))
  before = _peak_bytes()
  _drain(dataset)
  print(_peak_bytes() - before)


if __name__ == "__main__":
  main(sys.argv[1])
