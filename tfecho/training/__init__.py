"""Training with Keras, and what it takes to do so under an echo."""

from tfecho.training import augmentation, optimizers, schedules
from tfecho.training.callbacks import (
  AveragedWeights,
  BackupAndRestore,
  EchoFactorSchedule,
  EchoMonitor,
  FreshEpochs,
  StopAtTarget,
)
from tfecho.training.durations import Duration, Timeline
from tfecho.training.harness import TrainingResult, train
from tfecho.training.layout import check_layout, to_channels_last
from tfecho.training.precision import check_precision, set_precision

__all__ = [
  "AveragedWeights",
  "BackupAndRestore",
  "Duration",
  "EchoFactorSchedule",
  "EchoMonitor",
  "FreshEpochs",
  "StopAtTarget",
  "Timeline",
  "TrainingResult",
  "augmentation",
  "check_layout",
  "check_precision",
  "optimizers",
  "schedules",
  "set_precision",
  "to_channels_last",
  "train",
]
