"""A dataset whose iteration goes on where it was, in another process, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from tfecho.datasets import UnaryDataset
from tfecho.training.callbacks.random_stages import check_passes


class ContinuedDataset(UnaryDataset):
  """Looks like `dataset`, but iterating goes on where it was.

  For `fit`, which wants a new iterator now and then, while only the position
  of one that is known can be saved. It gives way to a new one with
  `begin_pass`.

  Attributes:
    iterator: that of the present pass.
    passes: how many have begun.
    is_used: whether anybody has asked for that iterator.
  """

  def __init__(self, dataset: tf.data.Dataset):
    check_passes(dataset)
    super().__init__(dataset, tf.data.experimental.to_variant(dataset))
    self._dataset = dataset
    self._length = int(dataset.cardinality())
    self.passes = 0
    self.begin_pass()

  def __iter__(self) -> Iterator[Any]:
    self.is_used = True
    return self.iterator

  def begin_pass(self) -> None:
    """Starts with the first element again, if there is an end to `dataset`."""
    if self.passes and self._length == tf.data.INFINITE_CARDINALITY:
      return
    self.passes += 1
    self.iterator = iter(_made_late(self._dataset))
    self.is_used = False

  def skip_to_pass(self, number: int) -> None:
    """Makes the present pass, which must be the first, the one of that number.

    Seeds of random stages follow each other from pass to pass. An iterator
    takes those of its pass when it is made, without reading anything.
    """
    for _ in range(number - self.passes):
      iter(self._dataset)
    self.passes = number

  def check_epochs(self, steps: int | None) -> None:
    """Raises ValueError unless epochs of `steps` can be told apart."""
    if steps is None:
      raise ValueError(
        "`data` must have a known cardinality, or `fit` must be told"
        " `steps_per_epoch`"
      )
    if self._length >= 0 and steps != self._length:
      raise ValueError(
        f"`data` has {self._length} batches, and an epoch has {steps} steps:"
        " for other epochs than passes over the data, it must have no end"
      )


def _made_late(dataset: tf.data.Dataset) -> tf.data.Dataset:
  """Returns `dataset`, of which the first request makes the iterator.

  Restoring an iterator makes it once more. Made late, it is made once all the
  same, and takes its seeds once: only those of stages that are read to their
  end are not restored with it.
  """
  # A shuffle does so, and among one element there is nothing to shuffle.
  late = dataset.shuffle(1, reshuffle_each_iteration=False)
  # TensorFlow would put a prefetch behind the last stage, and so behind the
  # `monitor` that is it.
  options = tf.data.Options()
  options.experimental_optimization.inject_prefetch = False
  return late.with_options(options)
