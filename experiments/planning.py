"""From what a person asks for to the list of training runs that answer it."""

from __future__ import annotations

from experiments import command_line, request_checks
from experiments.arms import ON_STALL, Arm
from experiments.request import TIME
from experiments.settings import RunSettings


def plan(request, rate_of):
  """Returns the `RunSettings` of all runs, those that take longest first.

  Args:
    request: A `Request`.
    rate_of: Called with an arm and the keywords of `learning_rates.find`;
      returns the arm's learning rate.

  Raises:
    ValueError: If something in the request is out of its range; the message
      starts with the flag that has to change.
  """
  workload = request_checks.workload_of(request)
  request = request.completed(workload)
  request_checks.check(request, workload)
  compared = request.compared()
  # Without a slow upstream, an echo on stall is the baseline.
  constant = [arm for arm in compared if not arm.on_stall]
  runs = []
  if "target" in request.measure:
    runs += _every_seed(request, rate_of, constant, measure="target")
  if "final" in request.measure:
    arms = constant + request.falling()
    for resolution in request.schedule_resolution:
      options = {"measure": "final", "schedule_resolution": resolution}
      runs += _every_seed(request, rate_of, arms, **options)
  return _timed(request, rate_of, compared) + runs


def _every_seed(request, rate_of, arms, **options):
  return [
    _run(request, rate_of, arm, seed=seed, **options)
    for seed in request.seeds
    for arm in arms
  ]


def _timed(request, rate_of, compared):
  """The runs with a slow upstream."""
  delay = request.delay()
  if not delay:
    return []
  seeds = request.seeds if TIME in request.measure else request.seeds[:1]
  return [
    _run(request, rate_of, arm, measure="target", seed=seed, **delay)
    for seed in seeds
    for arm in _timed_arms(request, compared)
  ]


def _timed_arms(request, compared):
  """All arms if time is what was asked for, else the baseline and one echo."""
  if TIME in request.measure:
    return compared
  echoes = [arm for arm in compared if arm.is_echo]
  if not echoes or "target" not in request.measure:
    return []
  chosen = (echoes[0].kind, ON_STALL)
  return [Arm(), *(arm for arm in echoes if arm.kind in chosen)]


def _run(request, rate_of, arm, *, measure, seed, **options):
  common = {
    "workload": request.workload,
    "preset": request.preset,
    "measure": measure,
    "batch_size": request.batch_size,
  }
  with command_line.blaming("learning_rates"):
    rate = rate_of(
      arm,
      optimizer=request.training.optimizer,
      augmentation=request.augmentation,
      **common,
    )
  return RunSettings(
    **common,
    arm=arm,
    seed=seed,
    learning_rate=rate,
    echo_buffer=request.echo_buffer,
    **{"upstream_ms": 0.0, **options},
    targets=request.targets,
    max_steps=(
      request.max_steps if measure == "target" else request.final_steps
    ),
    evaluation_steps=request.evaluation_steps,
    implementation=request.implementation,
    training=request.training,
    augmentation=request.augmentation,
    service_echo=request.service_echo,
  )
