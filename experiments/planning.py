"""From what a person asks for to the list of training runs that answer it."""

from __future__ import annotations

import dataclasses

from experiments import served, workloads
from experiments.arms import BASELINE, ON_STALL, PLACES, Arm, cross, parse
from experiments.settings import MEASURES, RESOLUTIONS, RunSettings
from experiments.store import objects, server
from experiments.training_settings import TrainingSettings
from experiments.workloads.augmented import augmented

# The second half of "target" by itself: the time to it behind a slow upstream.
TIME = "time"
MEASURED = (*MEASURES, TIME)


@dataclasses.dataclass(frozen=True)
class Request:
  """What to compare; None where the workload's own value is wanted.

  Attributes:
    workload: Name of the workload.
    preset: Its preset.
    arms: Kinds of arms, as `arms.parse` takes them; by default the baseline
      and the places of the paper that the workload has.
    factors: Echoing factors, for every kind but the baseline.
    seeds: Seeds of the runs, one run of each arm per seed.
    measure: Some of `MEASURED`.
    targets: Values of the metric, from easy to hard.
    max_steps: Training steps after which a target counts as missed.
    final_steps: Training steps of a run whose final metric is measured.
    evaluation_steps: Training steps from one evaluation to the next.
    batch_size: Examples per training step.
    echo_buffer: Fresh examples held behind the echo.
    upstream_ms: Milliseconds per example of the runs that are timed; 0 for no
      such runs.
    upstream_jitter: Standard deviation of that over its mean.
    store: URL of the folder in somebody's own object store that the runs that
      are timed read from; None if they don't.
    store_ms: Milliseconds from a request to the first byte of its answer, if
      they read from one that is started for them; None if not.
    store_kb_per_second: Its bandwidth; None for no limit.
    service_echo: Where an echo stands, if a tf.data service reads and decodes.
    implementation: "native" or "graph".
    schedule_resolution: Some of `RESOLUTIONS`, for runs whose final metric is
      measured.
    factor_schedules: Pairs of a first and a last factor; every echo is also
      run, for its final metric, with a factor that falls from one to the other.
    training: Precision, layout and the like, of all runs.
    augmentation: What is done behind the workload's own; None for nothing.
  """

  workload: str
  preset: str
  arms: tuple[str, ...] | None
  factors: tuple[float, ...]
  seeds: tuple[int, ...]
  measure: tuple[str, ...]
  targets: tuple[float, ...] | None
  max_steps: int | None
  final_steps: int
  evaluation_steps: int | None
  batch_size: int | None
  echo_buffer: int
  upstream_ms: float
  implementation: str
  upstream_jitter: float = 0.0
  store: str | None = None
  store_ms: float | None = None
  store_kb_per_second: float | None = None
  service_echo: str | None = None
  schedule_resolution: tuple[str, ...] = ("step",)
  factor_schedules: tuple[tuple[float, float], ...] = ()
  training: TrainingSettings = TrainingSettings()
  augmentation: str | None = None


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
  workload = _workload(request)
  request = _completed(request, workload)
  _check(request, workload)
  compared = _arms(request)
  # Without a slow upstream, an echo on stall is the baseline.
  constant = [arm for arm in compared if not arm.on_stall]
  runs = []
  if "target" in request.measure:
    runs += _every_seed(request, rate_of, constant, measure="target")
  if "final" in request.measure:
    arms = constant + _falling_arms(request, constant)
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


def _falling_arms(request, arms):
  """Those with a factor that changes, one of each kind of echo."""
  kinds = dict.fromkeys(arm.kind for arm in arms if arm.echo_after is not None)
  return [
    parse(kind, first).falling_to(last)
    for kind in kinds
    for first, last in request.factor_schedules
  ]


def _timed(request, rate_of, compared):
  """The runs with a slow upstream."""
  delay = _delay(request)
  if not delay:
    return []
  seeds = request.seeds if TIME in request.measure else request.seeds[:1]
  return [
    _run(request, rate_of, arm, measure="target", seed=seed, **delay)
    for seed in seeds
    for arm in _timed_arms(request, compared)
  ]


def _delay(request):
  """What makes upstream slow, if anything does."""
  if request.store is not None:
    return {"store": request.store}
  if request.store_ms is not None:
    return {
      "store_ms": float(request.store_ms),
      "store_kb_per_second": request.store_kb_per_second,
    }
  if request.upstream_ms:
    return {
      "upstream_ms": float(request.upstream_ms),
      "upstream_jitter": float(request.upstream_jitter),
    }
  return {}


def _timed_arms(request, compared):
  """All arms if time is what was asked for, else the baseline and one echo."""
  if TIME in request.measure:
    return compared
  echoes = [arm for arm in compared if arm.echo_after is not None]
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
  return RunSettings(
    **common,
    arm=arm,
    seed=seed,
    learning_rate=_blame(
      "--learning_rates",
      rate_of,
      arm,
      optimizer=request.training.optimizer,
      augmentation=request.augmentation,
      **common,
    ),
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


def _completed(request, workload):
  """Returns the request with the workload's values where it names none."""
  stages = _places(workload)
  kinds = [f"after_{x}" for x in ("decode", "augment", "batch") if x in stages]
  defaults = {
    "arms": (BASELINE, *kinds),
    "targets": workload.targets,
    "max_steps": workload.max_steps,
    "evaluation_steps": workload.evaluation_steps,
    "batch_size": workload.batch_size,
  }
  missing = {n: v for n, v in defaults.items() if getattr(request, n) is None}
  return dataclasses.replace(request, **missing)


def _places(workload):
  return [x for x in PLACES if x != "augment" or workload.augment is not None]


def _workload(request):
  _blame("--workload", workloads.presets, request.workload)
  workload = _blame("--preset", workloads.get, request.workload, request.preset)
  if request.augmentation is not None:
    _blame("--augmentation", augmented, workload, request.augmentation)
  return workload


def _arms(request):
  for factor in request.factors:
    _blame("--factors", parse, "after_batch", factor)
  return cross(request.arms, request.factors)


def _blame(flag, function, *arguments, **keywords):
  try:
    return function(*arguments, **keywords)
  except ValueError as error:
    raise ValueError(f"{flag}: {error}") from None


def _check(request, workload):
  """Checks all that is not checked where it is used."""
  for flag in ("arms", "factors", "measure", "seeds"):
    _check_list(flag, getattr(request, flag))
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
  _check_minimum("echo_buffer", request.echo_buffer, 2 * request.batch_size)
  for kind in request.arms:
    _check_place(_blame("--arms", parse, kind), workload)


def _check_place(arm, workload):
  if arm.echo_after not in (None, *_places(workload)):
    raise ValueError(
      f"--arms: {workload.name} is not augmented, got {arm.kind}"
    )


def _check_timed(request):
  """Checks that there is a slow upstream for whatever needs one."""
  for flag in _needing_delay(request):
    if not _delay(request):
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
    _blame("--store_ms", server.check_installed)
    _blame("--store_ms", objects.check_images, workload)
    return
  if request.store_ms is not None:
    raise ValueError(
      "--store_ms: must not come with --store, which is a store itself, got "
      f"{request.store_ms:g}"
    )
  _blame("--store", objects.stored, workload, request.store)


def _check_service(request, workload):
  """Checks that a service can feed all arms, and that they can be counted."""
  where = request.service_echo
  if where is None:
    return
  # The first of these settings is called like the flag.
  slow = [f"--{name}" for name in _delay(request)][:1]
  slow += _needing_delay(request)
  if slow:
    raise ValueError(
      f"--data_service: must come without {' and '.join(slow)}: slow would be"
      " reading in this process, and its workers are others"
    )
  _blame("--data_service", served.check_workload, workload)
  for arm in _arms(request) + _falling_arms(request, _arms(request)):
    _blame("--data_service", served.check_arm, arm, where)


def _check_schedules(request):
  """Checks what changes in the course of runs for their final metric."""
  _check_list("schedule_resolution", request.schedule_resolution)
  for resolution in request.schedule_resolution:
    if resolution not in RESOLUTIONS:
      raise ValueError(
        f"--schedule_resolution: must be some of {_join(RESOLUTIONS)}, got "
        f"{resolution!r}"
      )
  for first, last in request.factor_schedules:
    arm = _blame("--factor_schedule", parse, "after_batch", first)
    _blame("--factor_schedule", arm.falling_to, last)
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
