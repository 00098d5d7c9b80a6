"""A dataset whose iteration goes on where it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from tfecho.datasets import UnaryDataset


class ContinuedDataset(UnaryDataset):
  """Looks like `dataset`, but iterating goes on where it was.

  For `fit`, which wants a new iterator for every epoch, while only the
  position of one that is known can be saved.

  Attributes:
    iterator: the one and only.
    is_used: whether anybody has asked for it.
  """

  def __init__(self, dataset: tf.data.Dataset):
    super().__init__(dataset, tf.data.experimental.to_variant(dataset))
    self._length = int(dataset.cardinality())
    if self._length != tf.data.INFINITE_CARDINALITY:
      dataset = dataset.repeat()
      # TensorFlow would put a prefetch behind the last stage, and behind the
      # `monitor` that is it.
      options = tf.data.Options()
      options.experimental_optimization.inject_prefetch = False
      dataset = dataset.with_options(options)
    self.iterator = iter(dataset)
    self.is_used = False

  def __iter__(self) -> Iterator[Any]:
    self.is_used = True
    return self.iterator

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
        " for other epochs than passes over the data, `repeat` it without end"
      )
