"""Saves iterators and goes on from there, in a test.

  iterator = iter(with_options(dataset, symbolic=True))
  next(iterator)
  checkpoint = save(iterator, tmp_path / "iterator")
  rest = values(resume(another_dataset, checkpoint))
"""

import pytest
import tensorflow as tf

plain_and_symbolic = pytest.mark.parametrize(
  "symbolic", [False, True], ids=["plain", "symbolic"]
)


def with_options(dataset, *, symbolic=False, optimized=True):
  """Returns `dataset` with one way to write checkpoints."""
  options = tf.data.Options()
  options.experimental_symbolic_checkpoint = symbolic
  options.experimental_optimization.apply_default_optimizations = optimized
  # A prefetch at the end would run ahead of the positions that a test means.
  # In TensorFlow 2.15 to 2.21 it also hangs, now and then, when a symbolic
  # checkpoint of `flat_map(...).shuffle(...).repeat(3)` is written at its end.
  options.experimental_optimization.inject_prefetch = False
  # Tuned, an iterator may take half a second to go.
  options.autotune.enabled = False
  return dataset.with_options(options)


def save(iterator, path):
  """Writes the position of `iterator`; returns the name of the checkpoint."""
  return tf.train.Checkpoint(iterator=iterator).write(str(path))


def resume(dataset, checkpoint):
  """Returns an iterator over `dataset` that goes on where it was saved."""
  iterator = iter(dataset)
  tf.train.Checkpoint(iterator=iterator).read(checkpoint).assert_consumed()
  return iterator


def values(iterator):
  """Returns the rest of `iterator` as a list of Python values."""
  return [element.numpy().tolist() for element in iterator]
