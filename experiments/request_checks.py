"""Refuses a request that makes no sense, by the flag that has to change."""

from __future__ import annotations

from experiments import echo_flags, served, workloads
from experiments.arms import ON_STALL, parse
from experiments.command_line import blaming
from experiments.request import MEASURED, TIME, places
from experiments.settings import RESOLUTIONS
from experiments.store import objects, server
from experiments.workloads.augmented import augmented


def workload_of(request):
  """Returns the workload that is asked for.

  Raises:
    ValueError: If there is none like it; the message starts with the flag.
  """
  with blaming("workload"):
    workloads.presets(request.workload)
  with blaming("preset"):
    workload = workloads.get(request.workload, request.preset)
  if request.augmentation is not None:
    with blaming("augmentation"):
      augmented(workload, request.augmentation)
  return workload


def check(request, workload):
  """Checks all that is not checked where it is used.

  Args:
    request: A `Request` that was `completed`.
    workload: Its workload.

  Raises:
    ValueError: If something is out of its range, or does not go together; the
      message starts with the flag.
  """
  for flag in ("arms", "factors", "measure", "seeds"):
    _check_list(flag, getattr(request, flag))
  _check_arms(request, workload)
  for measure in request.measure:
    if measure not in MEASURED:
      raise ValueError(
        f"--measure: must be some of {_join(MEASURED)}, got {measure!r}"
      )
  _check_targets(request.targets, maximize=workload.maximize)
  for flag in ("max_steps", "final_steps", "evaluation_steps"):
    _check_minimum(flag, getattr(request, flag), 1)
  _check_minimum("batch_size", request.batch_size, 1)
  _check_minimum("upstream_ms", request.upstream_ms, 0)
  _check_minimum("upstream_jitter", request.upstream_jitter, 0)
  _check_service(request, workload)
  _check_timed(request)
  _check_store(request, workload)
  _check_schedules(request)
  echo_flags.check_echo_buffer(request.echo_buffer, request.batch_size)


def _check_arms(request, workload):
  with blaming("factors"):
    for factor in request.factors:
      parse("after_batch", factor)
  with blaming("arms"):
    for arm in map(parse, request.arms):
      if arm.echo_after not in (None, *places(workload)):
        raise ValueError(f"{workload.name} is not augmented, got {arm.kind}")


def _check_timed(request):
  """Checks that there is a slow upstream for whatever needs one."""
  for flag in _needing_delay(request):
    if not request.delay():
      raise ValueError(
        f"--upstream_ms: must be above 0 for {flag}, got {request.upstream_ms}"
      )
    if not {"target", TIME} & set(request.measure):
      raise ValueError(
        f"--measure: must name target or {TIME} for {flag}, got "
        f"{_join(request.measure)}"
      )


def _needing_delay(request):
  """What the request has that makes sense behind a slow upstream alone."""
  needs = {
    "--measure=time": TIME in request.measure,
    "--arms=on_stall": ON_STALL in request.arms,
    "--upstream_jitter": request.upstream_jitter > 0,
  }
  return [flag for flag, is_used in needs.items() if is_used]


def _check_store(request, workload):
  if request.store_ms is None and request.store_kb_per_second is not None:
    raise ValueError(
      "--store_kb_per_second: must come with --store_ms, got "
      f"{request.store_kb_per_second:g}"
    )
  if request.store is None and request.store_ms is None:
    return
  flag = "--store_ms" if request.store is None else "--store"
  if request.upstream_ms or request.upstream_jitter:
    raise ValueError(
      f"--upstream_ms: must be 0 with {flag}, which is a slow upstream itself,"
      f" got {request.upstream_ms:g}"
    )
  if TIME not in request.measure:
    raise ValueError(
      f"--measure: must name {TIME} for {flag}, got {_join(request.measure)}"
    )
  if request.store is None:
    _check_minimum("store_ms", request.store_ms, 0)
    with blaming("store_ms"):
      server.check_installed()
      objects.check_images(workload)
    return
  if request.store_ms is not None:
    raise ValueError(
      "--store_ms: must not come with --store, which is a store itself, got "
      f"{request.store_ms:g}"
    )
  with blaming("store"):
    objects.stored(workload, request.store)


def _check_service(request, workload):
  """Checks that a service can feed all arms, and that they can be counted."""
  if request.service_echo is None:
    return
  slow = [f"--{name}" for name in request.delay()][:1]
  slow += _needing_delay(request)
  if slow:
    raise ValueError(
      f"--data_service: must come without {' and '.join(slow)}: slow would be"
      " reading in this process, and its workers are others"
    )
  with blaming("data_service"):
    served.check_workload(workload)
    for arm in request.compared() + request.falling():
      served.check_arm(arm, request.service_echo)


def _check_schedules(request):
  """Checks what changes in the course of runs for their final metric."""
  _check_list("schedule_resolution", request.schedule_resolution)
  for resolution in request.schedule_resolution:
    if resolution not in RESOLUTIONS:
      raise ValueError(
        f"--schedule_resolution: must be some of {_join(RESOLUTIONS)}, got "
        f"{resolution!r}"
      )
  with blaming("factor_schedule"):
    for first, last in request.factor_schedules:
      parse("after_batch", first).falling_to(last)
  changed = {
    "--factor_schedule": request.factor_schedules != (),
    "--schedule_resolution=epoch": "epoch" in request.schedule_resolution,
  }
  for flag, is_used in changed.items():
    if is_used and "final" not in request.measure:
      raise ValueError(
        f"--measure: must name final for {flag}, got {_join(request.measure)}"
      )


def _check_list(flag, values):
  if not values:
    raise ValueError(f"--{flag}: must name at least one, got none")
  if len(set(values)) < len(values):
    raise ValueError(f"--{flag}: must name each once, got {_join(values)}")


def _check_targets(targets, *, maximize):
  _check_list("targets", targets)
  # What is to be maximized are shares: accuracy, mean average precision.
  highest = 1 if maximize else float("inf")
  for value in targets:
    if not 0 < value <= highest:
      raise ValueError(f"--targets: must be in (0, {highest}], got {value}")
  if list(targets) != sorted(targets, reverse=not maximize):
    raise ValueError(
      f"--targets: must go from easy to hard, got {_join(targets)}"
    )


def _check_minimum(flag, value, minimum):
  if not minimum <= value < float("inf"):
    raise ValueError(
      f"--{flag}: must be finite and at least {minimum}, got {value}"
    )


def _join(values):
  return ", ".join(str(value) for value in values)
