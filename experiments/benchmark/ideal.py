"""How near a fresh element comes to max(t_up, e * t_down).

    python -m experiments.benchmark --suite=ideal

With both sides of the echo running in parallel a fresh element costs what the
slower side takes: `t_up` to read it, or `t_down` for each of its `e` training
steps (Choi et al., arXiv 1907.05550). Both are sleeps here, which two cores can
do at once. What exceeds the ideal is time in which one side waited for the
other although it had work to do. A busy machine sleeps too long, so what the
sleeps of the model really take is timed in every round. Costs are in
milliseconds per fresh element.
"""

import functools
import time

import tensorflow as tf

import tfecho
from experiments.benchmark import drive
from experiments.benchmark.runner import Bound, Case

FACTORS = (1, 2, 4, 6)
UPSTREAM_MS = 60
STEP_MS = 15

# Fresh elements per measurement, after those that fill the pipeline.
WARMUP_FRESH = 2
MEASURED_FRESH = 8


def cases():
  """One case per factor: below, at and above R = t_up / t_down = 4."""
  return [_case(factor) for factor in FACTORS]


def _case(factor):
  pipelines = {
    "echo": lambda ds: ds.apply(tfecho.echo(factor, implementation="native")),
    "idiom": drive.idiom(factor),
    "idiom, prefetch(1)": lambda ds: ds.apply(drive.idiom(factor)).prefetch(1),
  }
  model = "max(t_up, e t_down)"
  return Case(
    what=f"t_up = {UPSTREAM_MS} ms, t_down = {STEP_MS} ms, e = {factor}",
    unit="ms",
    contenders={
      model: lambda: lambda: _ideal_ms(factor),
      **{
        name: functools.partial(_start, pipeline, factor)
        for name, pipeline in pipelines.items()
      },
    },
    bounds=[
      Bound("echo", model, 1.10),
      Bound("idiom", model),
      Bound("idiom, prefetch(1)", model),
    ],
    max_rounds=5,
  )


def _ideal_ms(factor):
  """The time model, for what the sleeps take on this machine at this time."""
  return max(_sleep_ms(UPSTREAM_MS), factor * _sleep_ms(STEP_MS))


def _sleep_ms(nominal_ms, repeats=5):
  """How long a sleep takes that was to take `nominal_ms`."""
  start = time.perf_counter()
  for _ in range(repeats):
    time.sleep(nominal_ms / 1e3)
  return 1e3 * (time.perf_counter() - start) / repeats


def _start(pipeline, factor):
  """A probe that iterates anew each time, since buffers fill in a pause."""
  dataset = drive.without_injected_prefetch(pipeline(_slow_source()))
  return lambda: factor * drive.ms_per_step(
    dataset,
    step_ms=STEP_MS,
    warmup=WARMUP_FRESH * factor,
    measured=MEASURED_FRESH * factor,
  )


def _slow_source():
  def read(i):
    time.sleep(UPSTREAM_MS / 1e3)
    return i

  return tf.data.Dataset.range(10**9).map(
    lambda i: tf.ensure_shape(tf.numpy_function(read, [i], tf.int64), [])
  )
