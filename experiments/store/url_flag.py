"""The flag that says which store the examples are in, if they are in one."""

import dataclasses

import tensorflow as tf
from absl import flags

from experiments.store import objects

STORE = flags.DEFINE_string(
  "store",
  None,
  "URL of the folder, such as s3://bucket/digits, that the training examples "
  "are read from, where `python -m experiments.put` has put them. Default: the "
  "workload's own data.",
)

_READS_AT_ONCE = 32


def stored(workload):
  """Returns the workload, read from the store if the flag names one.

  Raises:
    ValueError: If the examples of the workload are no images.
    OSError: If there are none in the store.
  """
  if STORE.value is None:
    return workload
  options = tf.data.Options()
  options.threading.private_threadpool_size = _READS_AT_ONCE
  workload = objects.stored(workload, STORE.value)
  keys = workload.train().with_options(options)
  return dataclasses.replace(workload, train=lambda: keys)
