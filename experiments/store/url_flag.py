"""The flag that says which store the examples are in, if they are in one."""

from absl import flags

from experiments import command_line
from experiments.store import objects

STORE = flags.DEFINE_string(
  "store",
  None,
  "URL of the folder, such as s3://bucket/digits, that the training examples "
  "are read from, where `python -m experiments.put` has put them. Default: the "
  "workload's own data.",
)


def stored(workload):
  """Returns the workload, read from the store if the flag names one.

  Raises:
    ValueError: If the examples of the workload are no images, or there are none
      in the store.
  """
  if STORE.value is None:
    return workload
  with command_line.blaming("store"):
    return objects.Own(STORE.value).holding(workload)
