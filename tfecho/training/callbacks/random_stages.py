"""What is random in a dataset, and whether that can be restored.

Random stages take the seeds of a pass over the data when their iterator is
made, the next ones in every pass. So a restored pass, and those after it, are
what they would have been if as many iterators are made before. But some stages
make the iterator of their input later than their own, more than once, or not in
every pass: a shuffle, a `repeat`, a concatenation, a cache. How many seeds were
taken upstream of them depends on what was read, and is not always saved. Then
passes would differ from those of a run without interruption, and nothing would
say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

# TensorFlow's own; that of tfecho keeps its input.
_SHUFFLES = ("ShuffleDataset", "ShuffleDatasetV2", "ShuffleDatasetV3")
_CACHES = ("CacheDataset", "CacheDatasetV2")
_LATE = (*_SHUFFLES, *_CACHES, "ConcatenateDataset")

_Node = Any  # tf.compat.v1.NodeDef
_Nodes = dict[str, _Node]


def check_passes(dataset: tf.data.Dataset) -> None:
  """Raises ValueError if passes after a restored one could differ."""
  nodes = _nodes(dataset)
  (output,) = (node for node in nodes.values() if node.op == "_Retval")
  ends = bool(dataset.cardinality() != tf.data.INFINITE_CARDINALITY)
  if _may_lose_seeds(nodes, output, ends=ends, late=False):
    raise ValueError(
      "`data` draws random numbers, or shuffles, upstream of a `shuffle`,"
      " `repeat`, `concatenate` or `cache`, and TensorFlow can't save the state"
      " of that for later passes. Shuffle once, or put an endless `repeat`"
      " right behind the first shuffle, and tell `fit` the `steps_per_epoch`;"
      " with `Pipeline.dataset`, by `repeat=True`"
    )


def _may_lose_seeds(
  nodes: _Nodes, node: _Node, *, ends: bool, late: bool
) -> bool:
  """Whether a stage at `node` or upstream may take seeds that nobody counts.

  Args:
    nodes: all nodes of the graph by name.
    node: where to look.
    ends: whether there is an end to the elements of this stage.
    late: whether a stage downstream decides when the iterator of this one is
      made.
  """
  if late and _is_random(node):
    return True
  passes = _passes(nodes, node)
  endless = passes < 0
  late = late or passes != 1 or (ends and node.op in _LATE)
  for upstream in _inputs(nodes, node):
    if endless and upstream.op in _SHUFFLES:
      # It ends and begins anew within one request, so that it is there
      # whenever the position is saved.
      upstream, *_ = _inputs(nodes, upstream)
    if _may_lose_seeds(nodes, upstream, ends=ends or endless, late=late):
      return True
  return False


def _is_random(node: _Node) -> bool:
  if node.op in _SHUFFLES:
    return node.attr["reshuffle_each_iteration"].b
  return node.op in ("RandomDataset", "RandomDatasetV2")


def _passes(nodes: _Nodes, node: _Node) -> int:
  """How often a stage goes through its input: once, but `repeat`."""
  if node.op != "RepeatDataset":
    return 1
  _, count = _inputs(nodes, node)
  return int(tf.make_ndarray(count.attr["value"].tensor))


def _inputs(nodes: _Nodes, node: _Node) -> Iterator[_Node]:
  for name in node.input:
    if not name.startswith("^"):
      yield nodes[name.split(":")[0]]


def _nodes(dataset: tf.data.Dataset) -> _Nodes:
  policy = dataset.options().experimental_external_state_policy
  policy = policy or tf.data.experimental.ExternalStatePolicy.FAIL
  try:
    serialized = tf.raw_ops.DatasetToGraphV2(
      input_dataset=tf.data.experimental.to_variant(dataset),
      external_state_policy=policy.value,
    )
  except tf.errors.FailedPreconditionError as error:
    raise ValueError(
      "the position in `data` can't be saved, since a stage has a state that"
      " TensorFlow can't see: draw random numbers by stateless operations, such"
      " as `tf.image.stateless_random_crop`, for which a stage of a `Pipeline`"
      " is given a seed if it has a parameter named `seed`; and don't call back"
      " into Python. TensorFlow says:"
      f" {error.message}"
    ) from error
  graph = tf.compat.v1.GraphDef.FromString(serialized.numpy())
  return {node.name: node for node in graph.node}
