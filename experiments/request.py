"""What a person asks to have compared."""

from __future__ import annotations

import dataclasses

from experiments.arms import BASELINE, PLACES, cross, parse
from experiments.settings import MEASURES
from experiments.training_settings import TrainingSettings

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

  def completed(self, workload):
    """Returns the request with the workload's values where it names none."""
    stages = places(workload)
    echoes = ("decode", "augment", "batch")
    kinds = [f"after_{place}" for place in echoes if place in stages]
    defaults = {
      "arms": (BASELINE, *kinds),
      "targets": workload.targets,
      "max_steps": workload.max_steps,
      "evaluation_steps": workload.evaluation_steps,
      "batch_size": workload.batch_size,
    }
    missing = {n: v for n, v in defaults.items() if getattr(self, n) is None}
    return dataclasses.replace(self, **missing)

  def compared(self):
    """Returns every kind of arm with every factor."""
    return cross(self.arms, self.factors)

  def falling(self):
    """Returns arms with a factor that changes, one of each kind of echo."""
    kinds = dict.fromkeys(
      arm.kind for arm in self.compared() if arm.is_echo and not arm.on_stall
    )
    return [
      parse(kind, first).falling_to(last)
      for kind in kinds
      for first, last in self.factor_schedules
    ]

  def delay(self):
    """Returns what makes upstream slow, as settings of a run, if anything does.

    The first of them is called like its flag.
    """
    if self.store is not None:
      return {"store": self.store}
    if self.store_ms is not None:
      return {
        "store_ms": float(self.store_ms),
        "store_kb_per_second": self.store_kb_per_second,
      }
    if self.upstream_ms:
      return {
        "upstream_ms": float(self.upstream_ms),
        "upstream_jitter": float(self.upstream_jitter),
      }
    return {}


def places(workload):
  """Returns the stages of a workload that an echo can stand behind."""
  return [x for x in PLACES if x != "augment" or workload.augment is not None]
