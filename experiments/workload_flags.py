"""The flags that say which workload, for every script that takes one."""

import os

from absl import flags

from experiments import workloads
from experiments.data import prepared

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
_DATA_DIR = flags.DEFINE_string(
  "data_dir",
  None,
  "Path of the directory where TensorFlow Datasets has prepared the data of "
  f"`paper`. Default: environment variable {prepared.VARIABLE}, else "
  "~/tensorflow_datasets.",
)


def use_data_dir():
  """Lets this process, and those that it starts, find the prepared data.

  Where data lie is no setting of a run: it changes nothing in the results.
  """
  if _DATA_DIR.value is not None:
    os.environ[prepared.VARIABLE] = _DATA_DIR.value
