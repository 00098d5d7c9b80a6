"""Workloads with an augmentation behind their own."""

import dataclasses

import tensorflow as tf

from tfecho.training import augmentation

# Of single images: the others mix the labels of a batch, too.
NAMES = ("trivial", "rand", "augmix", "auto")


def augmented(workload, name):
  """Returns the workload with one more augmentation, on the host.

  Args:
    workload: `Workload` of images, in uint8 or in floating point from 0 to 1.
    name: One of `NAMES`.

  Raises:
    ValueError: If there is no such augmentation, the workload has none, or its
      labels say where something is: most of these move that.
  """
  if name not in NAMES:
    raise ValueError(
      f"`augmentation` must be one of {', '.join(NAMES)}, got {name!r}"
    )
  if workload.augment is None:
    raise ValueError(
      f"`augmentation` is for images, {workload.name} has none, got {name!r}"
    )
  if workload.localized:
    raise ValueError(
      f"`augmentation` would move what the labels of {workload.name} say the"
      f" place of, got {name!r}"
    )
  own, more = workload.augment, augmentation.get(name)

  def augment(image, label, seed):
    own_seed, more_seed = tf.unstack(tf.random.split(seed))
    return more(*own(image, label, seed=own_seed), seed=more_seed)

  return dataclasses.replace(
    workload,
    augment=augment,
    description=f"{workload.description}, {name}",
  )
