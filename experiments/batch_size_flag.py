"""The flag that says how large batches are, for scripts that make some."""

from absl import flags

BATCH_SIZE = flags.DEFINE_integer(
  "batch_size",
  None,
  "Examples per training step; arms are compared with learning rates that were "
  "tuned for it. Default: the workload's.",
  lower_bound=1,
)
