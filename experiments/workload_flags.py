"""The flags that say which workload, for every script that takes one."""

import os

from absl import flags

from experiments import workloads
from experiments.data import prepared
from experiments.workloads import augmented

WORKLOAD = flags.DEFINE_string(
  "workload",
  "resnet32_cifar10",
  "Name of the workload, without unit, one of"
  f" {', '.join(workloads.NAMES)}.",
)
PRESET = flags.DEFINE_string(
  "preset",
  "small",
  "Size of the workload, a name, without unit: `small` fits two CPU cores, "
  "`paper` is the real data and model.",
)
AUGMENTATION = flags.DEFINE_enum(
  "augmentation",
  None,
  augmented.NAMES,
  "What images go through behind the workload's own augmentation, a name, "
  "without unit. Default: nothing.",
)
_DATA_DIR = flags.DEFINE_string(
  "data_dir",
  None,
  "Path of the directory where TensorFlow Datasets has prepared the data of "
  "`paper`, or the URL of its copy, such as s3://bucket/tfds. Default: "
  f"environment variable {prepared.VARIABLE}, else ~/tensorflow_datasets.",
)


def workload():
  """Returns the workload that the flags name.

  Raises:
    ValueError: If there is none of that name, preset and augmentation.
  """
  return workloads.get(
    WORKLOAD.value, PRESET.value, augmentation=AUGMENTATION.value
  )


def use_data_dir():
  """Lets this process, and those that it starts, find the prepared data.

  Where data lie is no setting of a run: it changes nothing in the results.
  """
  if _DATA_DIR.value is not None:
    os.environ[prepared.VARIABLE] = _DATA_DIR.value
