"""Everything that decides what one training run does, as one value."""

from __future__ import annotations

import dataclasses

from experiments.arms import Arm
from experiments.training_settings import TrainingSettings

MEASURES = ("target", "final")
RESOLUTIONS = ("step", "epoch")


@dataclasses.dataclass(frozen=True)
class RunSettings:
  """One run; two with equal settings differ by rounding at most.

  Attributes:
    workload: Name of the workload.
    preset: Its preset.
    measure: "target": trains at a constant rate until the hardest target is
      reached, `max_steps` at most. "final": trains `max_steps` while the rate
      falls to zero as a half cosine.
    arm: How the training is fed.
    seed: Of the first weights, the order, the augmentation and the echo.
    learning_rate: Where the rate starts.
    batch_size: Examples per training step.
    echo_buffer: Fresh examples held behind the echo, if the arm shuffles there.
    upstream_ms: Milliseconds for which reading one example occupies upstream.
    targets: Values of the metric, from easy to hard.
    max_steps: Number of training steps; see `measure`.
    evaluation_steps: Training steps from one evaluation to the next.
    implementation: Of the transformations, "native" or "graph".
    upstream_jitter: Standard deviation of upstream's time over its mean.
    store: URL of the folder in somebody's own object store that examples are
      read from; None if they are not.
    store_ms: Milliseconds from a request to the first byte of its answer, of
      the object store that is started to read them from; None if there is none.
    store_kb_per_second: Its bandwidth; None for no limit.
    service_echo: Where an echo stands, one of `served.ECHOES`, if a tf.data
      service reads and decodes; None if this process does.
    schedule_resolution: How often the rate falls: at every "step", or once an
      "epoch", which is a pass over the fresh examples.
    training: Precision, layout and the like.
    augmentation: What is done behind the workload's own; None for nothing.
  """

  workload: str
  preset: str
  measure: str
  arm: Arm
  seed: int
  learning_rate: float
  batch_size: int
  echo_buffer: int
  upstream_ms: float
  targets: tuple[float, ...]
  max_steps: int
  evaluation_steps: int
  implementation: str
  # Records made before there was any of these have none.
  upstream_jitter: float = 0.0
  store: str | None = None
  store_ms: float | None = None
  store_kb_per_second: float | None = None
  service_echo: str | None = None
  schedule_resolution: str = "step"
  training: TrainingSettings = TrainingSettings()
  augmentation: str | None = None

  def __str__(self):
    delay = f", {self.upstream_ms:g} ms upstream" if self.upstream_ms else ""
    if self.upstream_jitter:
      delay += f" with jitter {self.upstream_jitter:g}"
    if self.is_stored:
      delay += f", store {self.store or f'of {self.store_ms:g} ms'}"
    if self.service_echo is not None:
      delay += f", data service, echo: {self.service_echo}"
    how = ", ".join(filter(None, [self.augmentation, str(self.training)]))
    how = how and f" ({how})"
    per = f" per {self.schedule_resolution}" if self.is_per_epoch else ""
    return f"{self.arm}, {self.measure}{per}, seed {self.seed}{delay}{how}"

  @property
  def is_stored(self):
    """Whether the examples are read from an object store."""
    return self.store is not None or self.store_ms is not None

  @property
  def is_fast(self):
    """Whether nothing slows down reading."""
    return not self.upstream_ms and not self.is_stored

  @property
  def is_per_epoch(self):
    """Whether the rate falls once an epoch only."""
    return self.schedule_resolution == "epoch"

  def to_dict(self):
    """Returns the settings in the types that JSON has."""
    fields = dataclasses.asdict(self)
    fields["targets"] = list(self.targets)
    fields["training"] = self.training.to_dict()
    return fields

  @classmethod
  def from_dict(cls, fields):
    """Returns the settings that `to_dict` was called on."""
    arm = Arm(**fields["arm"])
    targets = tuple(fields["targets"])
    training = TrainingSettings.from_dict(fields.get("training", {}))
    given = {"arm": arm, "targets": targets, "training": training}
    return cls(**{**fields, **given})
