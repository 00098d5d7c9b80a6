"""The flags that say which workload, for every script that takes one."""

from absl import flags

WORKLOAD = flags.DEFINE_string(
  "workload", "resnet32_cifar10", "Name of the workload, without unit."
)
PRESET = flags.DEFINE_string(
  "preset",
  "small",
  "Size of the workload, a name, without unit: `small` fits two CPU cores.",
)
