"""Workers of a tf.data service, an echo, or both.

    python -m experiments.benchmark --suite=service

An element takes a worker `UPSTREAM_MS`, and the training `STEP_MS` for a step:
R = 4. Both are sleeps, so that the cores of this machine are not what workers
share. The dispatcher and the workers are processes. Costs are in milliseconds
per step. A second worker makes fresh elements come twice as fast; an echo takes
half as many of them, whether it stands on the workers, where it saves their
work, or behind the service, where it also saves sending.
"""

import atexit
import functools
import re
import subprocess
import sys

import tensorflow as tf
from tensorflow.python.data.experimental.ops import testing

import tfecho
from experiments.benchmark import drive
from experiments.benchmark.runner import Bound, Case

FACTOR = 2
UPSTREAM_MS = 40
STEP_MS = 10

WARMUP_STEPS = 20
MEASURED_STEPS = 40

# By name: workers, and where the echo stands.
CONTENDERS = {
  "1 worker": (1, None),
  "2 workers": (2, None),
  "1 worker, echo on it": (1, "workers"),
  "1 worker, echo behind": (1, "behind"),
  "2 workers, echo behind": (2, "behind"),
}


def cases():
  """One case: all of them against one worker without an echo."""
  return [
    Case(
      what=f"t_up = {UPSTREAM_MS} ms, t_down = {STEP_MS} ms, e = {FACTOR}",
      unit="ms per step",
      contenders={
        name: functools.partial(_start, *contender)
        for name, contender in CONTENDERS.items()
      },
      bounds=[
        Bound("2 workers", "1 worker", 0.6),
        Bound("1 worker, echo on it", "1 worker", 0.6),
        Bound("1 worker, echo behind", "1 worker", 0.6),
        Bound("2 workers, echo behind", "1 worker", 0.35),
      ],
      max_rounds=3,
    )
  ]


def _start(workers, echo):
  """Returns a probe that trains on a service of so many workers."""
  address = _service(workers)
  distributed = tf.data.experimental.service.distribute(
    "distributed_epoch", address, max_outstanding_requests=workers
  )
  copies = tfecho.echo(FACTOR, implementation="native")
  data = tf.data.Dataset.range(10**6).apply(testing.sleep(1000 * UPSTREAM_MS))
  if echo == "workers":
    data = data.apply(copies)
  data = data.apply(distributed)
  if echo == "behind":
    data = data.apply(copies)
  return functools.partial(
    drive.ms_per_step,
    drive.without_injected_prefetch(data),
    step_ms=STEP_MS,
    warmup=WARMUP_STEPS,
    measured=MEASURED_STEPS,
  )


@functools.cache
def _service(workers):
  """Starts a service of its own; returns the address of its dispatcher."""
  address = _process()
  for _ in range(workers):
    _process(f"--dispatcher={address.removeprefix('grpc://')}")
  return address


def _process(*flags):
  """Starts a process of a service; returns the address of the dispatcher."""
  process = subprocess.Popen(
    [sys.executable, "-m", "experiments.data_service", *flags],
    stdout=subprocess.PIPE,
    stderr=subprocess.DEVNULL,
    text=True,
  )
  atexit.register(process.kill)
  for line in process.stdout:
    if match := re.match(r"ready: (\S+)", line):
      return match[1]
  raise RuntimeError(f"a process of the service ended with {process.wait()}")
