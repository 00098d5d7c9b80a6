"""The stages that `Pipeline` is made of, each in the form of `Dataset.apply`.

  data = data.apply(stages.shuffle(10_000, seeds.order))
  data = data.apply(stages.mapped(decode))
  data = data.apply(stages.mapped(augment, seeds.augment))

A stage that has nothing to do returns its input, so that a pipeline reads as
one column of lines whichever of them are in use.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, Optional

import numpy as np
import tensorflow as tf

# Their elements are as large as what they refer to.
_UNSIZED = (tf.string, tf.variant, tf.resource)

Transformation = Callable[[tf.data.Dataset], tf.data.Dataset]


class Seeds(NamedTuple):
  """One seed for every stage that draws; all None if nothing was asked."""

  order: Optional[int] = None
  echo: Optional[int] = None
  buffer: Optional[int] = None
  augment: Optional[int] = None


def seeds(seed: int | None, shard_index: int = 0) -> Seeds:
  """Spreads one seed over the stages, differently on every shard.

  With the same numbers on each worker, the i-th example of all of them would
  be augmented alike.
  """
  if seed is None:
    return Seeds()
  words = np.random.SeedSequence([seed, shard_index]).generate_state(4)
  return Seeds(*(int(word) for word in words))


def shard(num_shards: int, index: int) -> Transformation:
  """This worker's elements, which tf.distribute must not divide once more."""

  def apply(data: tf.data.Dataset) -> tf.data.Dataset:
    if num_shards == 1:
      return data
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = (
      tf.data.experimental.AutoShardPolicy.OFF
    )
    return data.shard(num_shards, index).with_options(options)

  return apply


def shuffle(buffer_size: int | None, seed: int | None) -> Transformation:
  """`Dataset.shuffle`, in another order in every epoch."""

  def apply(data: tf.data.Dataset) -> tf.data.Dataset:
    if buffer_size is None:
      return data
    return data.shuffle(buffer_size, seed=seed)

  return apply


def mapped(
  function: Callable | None, seed: int | None = None
) -> Transformation:
  """A parallel `Dataset.map`, with a seed per element if `function` wants one.

  Args:
    function: What to call, or None for nothing. One that has a parameter named
      `seed` is given an int64 vector of two, another one for every element in
      every epoch: what `tf.image.stateless_*` and `tf.random.stateless_*` take.
    seed: Where these seeds start from; None for another start in every run.

  Returns:
    A transformation that can be passed to `tf.data.Dataset.apply`.
  """

  def apply(data: tf.data.Dataset) -> tf.data.Dataset:
    if function is None:
      return data
    if not takes_seed(function):
      return data.map(function, num_parallel_calls=tf.data.AUTOTUNE)
    # A dataset of its own instead of random operations in the function: its
    # position is part of the iterator, so checkpoints can hold it.
    drawn = tf.data.Dataset.random(seed, rerandomize_each_iteration=True)
    data = tf.data.Dataset.zip((data, drawn.batch(2, drop_remainder=True)))
    return data.map(_with_seed(function), num_parallel_calls=tf.data.AUTOTUNE)

  return apply


def takes_seed(function: Callable) -> bool:
  """Whether `function` has a parameter named `seed`."""
  try:
    return "seed" in inspect.signature(function).parameters
  except (TypeError, ValueError):  # some builtins do not tell
    return False


def _with_seed(function: Callable) -> Callable:
  """Unpacks (element, seed); the element as `Dataset.map` would unpack it."""

  def call(element: Any, seed: tf.Tensor) -> Any:
    # Not isinstance: `map` hands a named tuple over in one piece.
    if type(element) is tuple:
      return function(*element, seed=seed)
    return function(element, seed=seed)

  return call


def element_bytes(element_spec: Any) -> int | None:
  """The bytes of one element, or None if its shapes do not tell."""
  total = 0
  for spec in tf.nest.flatten(element_spec):
    if not isinstance(spec, tf.TensorSpec) or spec.dtype in _UNSIZED:
      return None
    if not spec.shape.is_fully_defined():
      return None
    total += spec.shape.num_elements() * spec.dtype.size
  return total
