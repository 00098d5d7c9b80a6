"""What mixed precision saves in a training step, and whether it costs accuracy.

    python -m experiments.benchmark --suite=precision

Costs of ResNet-32 are in milliseconds per training step on batches of 128. How
much faster it is depends on the processor: only where it multiplies bfloat16
itself is there a bound. It depends on Keras, too, since Keras 3 normalizes in
float32, in many ops: so the network is measured as it is and with that in one
op, and the bound is on the latter.

ResNet-8 on scikit-learn's digits is trained to the end, round by round from
another seed, and both precisions from the same one. Between seeds the share of
validation examples that are right differs by a hundredth: that is the bound.
"""

import contextlib
import functools
import pathlib
import re

from experiments import feeding, workloads
from experiments.benchmark import fused, training
from experiments.benchmark.runner import Bound, Case
from experiments.evaluating import Evaluation
from tfecho.training import (
  check_precision,
  schedules,
  set_precision,
  train,
)

MIXED = "mixed_bfloat16"

DIGITS_STEPS = 800
DIGITS_LEARNING_RATE = 0.004  # at the start; it falls to 0


def cases():
  """The time of a step, and the accuracy at the end."""
  return [
    _time("", lambda model: model, None),
    _time(
      ", normalization in one op",
      fused.with_fused_normalization,
      1 / 1.3 if multiplies_bfloat16() else None,
    ),
    Case(
      what=f"ResNet-8 on digits after {DIGITS_STEPS} steps",
      unit="share right",
      contenders={
        "float32": functools.partial(_accuracy, "float32"),
        MIXED: functools.partial(_accuracy, MIXED),
      },
      bounds=[Bound("float32", MIXED, 1.01)],
      max_rounds=3,
    ),
  ]


def _time(variant, change, at_most):
  """A step of ResNet-32, changed by a function from model to model."""
  return Case(
    what=f"ResNet-32, batch {training.BATCH_SIZE}{variant}",
    unit="ms",
    contenders={
      name: functools.partial(_step, name, change)
      for name in (MIXED, "float32")
    },
    bounds=[Bound(MIXED, "float32", at_most)],
  )


def multiplies_bfloat16(cpuinfo="/proc/cpuinfo"):
  """Whether the processor has instructions for it, as Linux tells."""
  path = pathlib.Path(cpuinfo)
  flags = path.read_text() if path.exists() else ""
  return re.search(r"\b(avx512_bf16|amx_bf16)\b", flags) is not None


@contextlib.contextmanager
def _precision(precision):
  set_precision(precision)
  try:
    yield
  finally:
    set_precision("float32")


def _step(precision, change):
  with _precision(precision):
    model = change(training.resnet32())
  check_precision(model)
  return training.step_of(model)


def _accuracy(precision):
  """A probe that trains from the next seed, and returns the accuracy."""
  workload = workloads.get("resnet32_cifar10", "small")
  seeds = iter(range(1_000))

  def probe():
    seed = next(seeds)
    result = train(
      workload.model,
      _digits(workload, seed),
      length=f"{DIGITS_STEPS}ba",
      epoch=f"{DIGITS_STEPS}ba",
      optimizer=workload.optimizer,
      learning_rate=schedules.linear(DIGITS_LEARNING_RATE),
      loss=workload.loss(),
      precision=precision,
      seed=seed,
      verbose=0,
      jit_compile=False,
    )
    return Evaluation(workload).of(result.model)

  return probe


def _digits(workload, seed):
  """The workload's batches, without end and without an echo."""
  pipeline = feeding.plain_pipeline(
    workload,
    batch_size=workload.batch_size,
    seed=seed,
  )
  return pipeline.dataset(repeat=True, implementation="graph")
