"""What a test plans: a small comparison, and whatever it changes of it."""

import dataclasses

from experiments import planning
from experiments.request import Request

REQUEST = Request(
  workload="resnet32_cifar10",
  preset="small",
  arms=("baseline", "after_decode", "after_batch"),
  factors=(2.0, 4.0),
  seeds=(0, 1, 2),
  measure=("target",),
  targets=None,
  max_steps=None,
  final_steps=100,
  evaluation_steps=None,
  batch_size=None,
  echo_buffer=512,
  upstream_ms=0.0,
  implementation="graph",
)


def plan(**changed):
  """Returns the runs of `REQUEST` with some of its fields changed."""
  request = dataclasses.replace(REQUEST, **changed)
  return planning.plan(request, lambda arm, **common: 0.001)
