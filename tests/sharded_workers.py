"""A worker under MultiWorkerMirroredStrategy, and what it decodes and gets.

As a script, `python sharded_workers.py FOLDER`, one process for each worker of
TF_CONFIG, it prints that for every way in which workers share numbers.
"""

import json
import pathlib
import sys

import tensorflow as tf
from decoding import Decoding, write_records, write_texts

import tfecho

WORKERS = 2
BATCH_SIZE = 4  # of both workers together
RECORDS = [[10 * i + j for j in range(3)] for i in range(4)]  # by file
NUMBERS = sum(RECORDS, [])


def applied(*transformations):
  """Files that TensorFlow divides, with these transformations behind them."""

  def distribute(strategy, decoding, folder):
    dataset = _records(folder).map(decoding.decode)
    for transformation in transformations:
      dataset = dataset.apply(transformation)
    dataset = dataset.batch(BATCH_SIZE)
    return strategy.experimental_distribute_dataset(dataset)

  return distribute


def piped(**echo):
  """The same files, and a `Pipeline` that leaves it to TensorFlow."""

  def distribute(strategy, decoding, folder):
    pipeline = tfecho.Pipeline(
      _records(folder), decode=decoding.decode, batch_size=BATCH_SIZE
    )
    return strategy.experimental_distribute_dataset(pipeline.dataset(**echo))

  return distribute


def by_context(files, **echo):
  """A `Pipeline` for each worker, over its part of so many names."""

  def distribute(strategy, decoding, folder):
    def batches(context):
      return tfecho.Pipeline(
        write_texts(folder, NUMBERS[:files]),
        read=tf.io.read_file,
        decode=decoding.decode,
        batch_size=context.get_per_replica_batch_size(BATCH_SIZE),
        shuffle_buffer=3,
        input_context=context,
      ).dataset(**echo)

    return strategy.distribute_datasets_from_function(batches)

  return distribute


def by_index(files, **echo):
  """The same, told which part it is."""

  def distribute(strategy, decoding, folder):
    pipeline = tfecho.Pipeline(
      write_texts(folder, NUMBERS[:files]),
      read=tf.io.read_file,
      decode=decoding.decode,
      batch_size=BATCH_SIZE,
      num_shards=WORKERS,
      shard_index=strategy.cluster_resolver.task_id,
    )
    return strategy.experimental_distribute_dataset(pipeline.dataset(**echo))

  return distribute


NATIVE, GRAPH = {"implementation": "native"}, {"implementation": "graph"}
SHUFFLE = tfecho.shuffle_after_echo
FRACTION = {"echo_after": "decode", "factor": 2.5}
BATCHES = {"echo_after": "batch", "factor": 2}
# Without the warm-up that `Pipeline` gives it, it repeats at once.
ON_STALL = {"echo_after": "decode", "max_factor": 3, "repeat": False}

BY_TENSORFLOW = {
  "echo, native": applied(tfecho.echo(2, **NATIVE)),
  "echo, graph": applied(tfecho.echo(2, **GRAPH)),
  "shuffle_after_echo, native": applied(
    tfecho.echo(2, **NATIVE), SHUFFLE(4, min_distance=2)
  ),
  "shuffle_after_echo, graph": applied(tfecho.echo(2, **GRAPH), SHUFFLE(4)),
  "echo_on_stall": applied(tfecho.echo_on_stall(3, buffer_size=4, warmup=0)),
  "pipeline, fraction, native": piped(**FRACTION, **NATIVE),
  "pipeline, batches, native": piped(**BATCHES, **NATIVE),
  "pipeline, batches, graph": piped(**BATCHES, **GRAPH),
  "pipeline, on stall": piped(**ON_STALL),
}
BY_PIPELINE = {
  f"{files} files, {name}": distribute(files, **echo)
  for files in (5, 1)
  for name, distribute, echo in [
    ("by context, fraction, native", by_context, {**FRACTION, **NATIVE}),
    ("by context, fraction, graph", by_context, {**FRACTION, **GRAPH}),
    ("by context, batches, graph", by_context, {**BATCHES, **GRAPH}),
    ("by context, on stall", by_context, ON_STALL),
    ("by index, fraction, native", by_index, {**FRACTION, **NATIVE}),
    ("by index, fraction, graph", by_index, {**FRACTION, **GRAPH}),
  ]
}


def _records(folder):
  names = write_records(folder, RECORDS)
  files = tf.data.Dataset.from_tensor_slices(names)
  return files.interleave(tf.data.TFRecordDataset, cycle_length=1)


def report(name, strategy, distribute, folder):
  """What this worker decodes, number by number, and what it gets."""
  print(name, flush=True)
  decoding = Decoding()
  got = []
  for batch in distribute(strategy, decoding, folder):
    for part in strategy.experimental_local_results(batch):
      got += part.numpy().tolist()
  return {"decoded": sorted(decoding.counts.elements()), "got": got}


def main(folder):
  strategy = tf.distribute.MultiWorkerMirroredStrategy()
  folder = pathlib.Path(folder, str(strategy.cluster_resolver.task_id))
  folder.mkdir(exist_ok=True)  # An attempt before may have made it.
  ways = {**BY_TENSORFLOW, **BY_PIPELINE}
  reports = {
    name: report(name, strategy, distribute, folder)
    for name, distribute in ways.items()
  }
  print(json.dumps(reports), flush=True)


if __name__ == "__main__":
  main(*sys.argv[1:])
