"""Sums over the workers of one training, each of which counts for itself.

    counts = total({"read": stats.read}, strategy)

Every worker has to ask at the same moment: none gets an answer before.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

# Those that read data; an evaluator or a parameter server does not.
_TRAINING_JOBS = ("chief", "worker")


def number(strategy: Any) -> int:
  """Returns how many processes train together under a strategy or None."""
  if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
    return 1
  cluster = strategy.cluster_resolver.cluster_spec().as_dict()
  return max(1, sum(len(cluster.get(job, ())) for job in _TRAINING_JOBS))


def total(values: Mapping[str, float], strategy: Any) -> dict[str, float]:
  """Returns `values`, each as the sum over all workers."""
  workers = number(strategy)
  if workers == 1:
    return dict(values)
  here = tf.constant(list(values.values()), tf.float64)
  sums = _sum(strategy)(here).numpy()
  replicas = strategy.num_replicas_in_sync // workers  # Each has told it.
  return dict(zip(values, (sums / replicas).tolist()))


@functools.lru_cache(maxsize=1)
def _sum(strategy: Any) -> Callable[[tf.Tensor], tf.Tensor]:
  """Returns a function, traced once, since eager collectives are slow."""

  @tf.function(input_signature=[tf.TensorSpec([None], tf.float64)])
  def add(here: tf.Tensor) -> tf.Tensor:
    on_replicas = strategy.run(tf.identity, args=(here,))
    return strategy.reduce("SUM", on_replicas, axis=None)

  return add
