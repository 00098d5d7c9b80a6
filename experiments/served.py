"""Input pipelines of which a tf.data service reads and decodes.

```python
service = Service("localhost:5000", echo="behind")
batches = service.batches(
  pipeline, arm, implementation="native", echo=feeding.echo(arm, ...)
)
```

Its workers do what stands before the echo, and at most read and decode; the
rest is done by the process that trains. The echo stands behind the service,
where a copy costs nothing to send, or in front of it, on the workers.

Each worker gets a share of the keys, as it needs them: a key is read by one of
them, once an epoch. One that is ahead begins the next epoch.
"""

from __future__ import annotations

import dataclasses
import itertools
import os

import tensorflow as tf

import tfecho
from tfecho import stages

BEHIND = "behind"
ON_WORKERS = "workers"
ECHOES = (BEHIND, ON_WORKERS)

# Where its address is: no setting of a run, since it changes nothing.
VARIABLE = "TFECHO_DATA_SERVICE"

# For longer than any training lasts.
_ENDLESS = 2**48

_IGNORE_STATE = 1  # Of `external_state_policy`: nothing is run.


@dataclasses.dataclass(frozen=True)
class Service:
  """A tf.data service, and where an echo stands.

  Attributes:
    address: HOST:PORT of its dispatcher.
    echo: One of `ECHOES`.
  """

  address: str
  echo: str = BEHIND

  def batches(self, pipeline, arm, *, implementation, echo):
    """Returns the endless dataset of the batches of a pipeline.

    Args:
      pipeline: `tfecho.Pipeline`.
      arm: `Arm`.
      implementation: Of the transformations.
      echo: What `feeding.echo` returns for the arm.

    Raises:
      ValueError: If this service can't feed the arm, or what stands on its
        workers is not of TensorFlow alone.
    """
    check_arm(arm, self.echo)
    on_workers = self.echo == ON_WORKERS and bool(echo)
    stays, copies = {}, stages.unchanged
    if on_workers:
      copies = _copies(pipeline, echo, implementation)
    data = _keys(pipeline).apply(stages.read(pipeline.read))
    if arm.echo_after == "read":
      data = data.apply(copies)
    if arm.echo_after == "read" and not on_workers:
      stays = {"read": lambda *record: record, "decode": pipeline.decode}
    else:
      data = data.apply(stages.mapped("decode", pipeline.decode))
    if arm.echo_after == "decode":
      data = data.apply(copies)
    check_portable(data)
    distributed = tf.data.experimental.service.distribute(
      "distributed_epoch", f"grpc://{self.address}"
    )
    return tfecho.Pipeline(
      data.apply(distributed),
      augment=pipeline.augment,
      batch_size=pipeline.batch_size,
      seed=pipeline.seed,
      **stays,
    ).dataset(
      repeat=True,
      implementation=implementation,
      **({} if on_workers else echo),
    )


def service(echo):
  """Returns the service whose address is in the environment."""
  return Service(os.environ[VARIABLE], echo)


def check_arm(arm, echo):
  """Raises ValueError if an arm can't be fed by a service.

  Args:
    arm: `Arm`.
    echo: One of `ECHOES`.
  """
  if arm.cached:
    raise ValueError(f"what is cached is read here, got {arm}")
  if echo == ON_WORKERS and (
    arm.echo_after not in (None, "read", "decode")
    or arm.on_stall
    or arm.last_factor is not None
  ):
    raise ValueError(
      "workers read and decode, and know nothing of the training: they can"
      f" echo by a constant factor after read or decode, got {arm}"
    )


def check_portable(data):
  """Raises ValueError if a dataset calls Python, which workers don't have."""
  serialized = tf.raw_ops.DatasetToGraphV2(
    input_dataset=tf.data.experimental.to_variant(data),
    external_state_policy=_IGNORE_STATE,
  )
  graph = tf.compat.v1.GraphDef.FromString(serialized.numpy())
  functions = [function.node_def for function in graph.library.function]
  for node in itertools.chain(graph.node, *functions):
    if "PyFunc" in node.op:
      raise ValueError(
        "its workers read and decode, and here that is done by Python, which is"
        " in this process only"
      )


def check_workload(workload):
  """Raises ValueError if runs of a workload can't be fed, or not counted."""
  check_keys(workload)
  data = workload.train().apply(stages.read(workload.read))
  check_portable(data.apply(stages.mapped("decode", workload.decode)))


def numbered_keys(workload, seed):
  """Returns pairs of an ordinal and a key, numbered for ever, over all epochs.

  The number comes first, and says which key it is: numbers that workers give to
  what comes by would be given twice.

  Args:
    workload: `Workload`.
    seed: Of the order.

  Raises:
    ValueError: If the keys of the workload are not the numbers from 0.
  """
  check_keys(workload)
  count = workload.train_examples

  def key(ordinal):
    epoch = tf.stack([tf.constant(seed, tf.int64), ordinal // count])
    index = tf.random.experimental.index_shuffle(
      ordinal % count, epoch, count - 1
    )
    return ordinal, index

  return tf.data.Dataset.range(_ENDLESS).map(key)


def check_keys(workload):
  """Raises ValueError if the keys of a workload are not the numbers from 0."""
  keys = workload.train()
  is_number = keys.element_spec == tf.TensorSpec([], tf.int64)
  if not is_number or int(keys.cardinality()) != workload.train_examples:
    raise ValueError(
      f"fresh examples of {workload.name} {workload.preset} can't be counted"
      " behind a service: its examples have no numbers that tell them apart,"
      " whichever worker reads them"
    )


def _keys(pipeline):
  keys = pipeline.source
  if pipeline.shuffle_buffer is not None:
    keys = keys.shuffle(pipeline.shuffle_buffer, seed=pipeline.seed)
  # On the workers: an epoch that begins anew here has the same order again.
  return keys.repeat()


def _copies(pipeline, echo, implementation):
  """What `Pipeline` puts behind a stage, for its arguments `echo`."""
  return stages.echoed(
    echo["factor"],
    rounding="even",
    buffer_size=echo["echo_buffer"],
    min_distance=pipeline.batch_size,
    seeds=stages.spread(pipeline.seed, 0),
    stats=None,
    implementation=implementation,
  )
