"""`train` under MultiWorkerMirroredStrategy, which Keras 2.15 can.

As a script, `python training_workers.py FOLDER`, one process for each worker of
TF_CONFIG, it prints what came of it, for every way to divide the data.
"""

import functools
import json
import pathlib
import sys

import keras
import tensorflow as tf
from decoding import Decoding, write_records

import tfecho
from tfecho.training import FreshEpochs, Timeline, train

RECORDS = [[4 * file + i for i in range(4)] for file in range(4)]
EXAMPLES = 16
BATCH_SIZE = 4  # of both workers together
FACTOR = 2
EPOCHS = 3


def build_model():
  zeros = keras.initializers.Zeros()
  return keras.Sequential(
    [keras.Input((1,)), keras.layers.Dense(1, kernel_initializer=zeros)]
  )


class Start(keras.callbacks.Callback):
  """Forgets what was decoded before the training, to look for mistakes."""

  def __init__(self, decoding):
    super().__init__()
    self._decoding = decoding

  def on_train_begin(self, logs=None):
    self._decoding.counts.clear()


def run(strategy, source, *, shard=None, **options):
  """What a training came to."""
  decoding, stats = Decoding(), tfecho.Stats()

  def decode(record):
    x = tf.cast(decoding.decode(record), tf.float32)[None] / EXAMPLES
    return x, 2 * x

  pipeline = tfecho.Pipeline(
    source, decode=decode, batch_size=BATCH_SIZE, seed=1, **shard or {}
  )
  arguments = {
    "length": f"{EPOCHS}ep",
    "echo": {"echo_after": "decode", "factor": FACTOR},
    "optimizer": functools.partial(keras.optimizers.SGD, 0.1),
    "loss": "mse",
    "validation_data": pipeline.dataset(),
    "stats": stats,
    **options,
  }
  result = train(
    build_model,
    pipeline,
    callbacks=[Start(decoding)],
    strategy=strategy,
    verbose=0,
    **arguments,
  )
  rows = result.curve
  return {
    "steps": [row["steps"] for row in rows],
    "fresh_examples": [row["fresh_examples"] for row in rows],
    "val_loss": [row["val_loss"] for row in rows],
    "weights": [weight.tolist() for weight in result.model.get_weights()],
    "decoded": sorted(decoding.counts),
    "consumed": stats.consumed,
  }


def steps_of_fresh_epochs(strategy, records):
  """Steps of epochs that end when all workers together are at their goal."""
  stats = tfecho.Stats()

  def decode(record):
    return tf.strings.to_number(record)[None], [0.0]

  pipeline = tfecho.Pipeline(records, decode=decode, batch_size=BATCH_SIZE)
  data = pipeline.dataset(
    echo_after="decode", factor=FACTOR, stats=stats, repeat=True
  )
  with strategy.scope():
    model = build_model()
    model.compile("sgd", "mse")
  epochs = FreshEpochs(stats, fresh_examples=EXAMPLES)
  fit = {"epochs": EPOCHS, "steps_per_epoch": 100, "verbose": 0}
  model.fit(data, callbacks=[epochs], **fit)
  steps = int(model.optimizer.iterations.numpy())
  return {"steps": steps, "consumed": stats.consumed}


def refusal(strategy, records, **options):
  """What is said to what can't work."""
  try:
    run(strategy, records, **options)
  except ValueError as error:
    return str(error)


def main(folder):
  strategy = tf.distribute.MultiWorkerMirroredStrategy()
  worker = strategy.cluster_resolver.task_id
  shard = {"num_shards": 2, "shard_index": worker}
  folder = pathlib.Path(folder, str(worker))
  folder.mkdir(exist_ok=True)  # An attempt before may have made it.
  files = tf.data.Dataset.from_tensor_slices(write_records(folder, RECORDS))
  records = files.interleave(tf.data.TFRecordDataset, cycle_length=1)
  records = records.apply(tf.data.experimental.assert_cardinality(EXAMPLES))

  reports = {
    "by TensorFlow": run(strategy, records),
    "by the pipeline": run(strategy, records, shard=shard),
    "by the pipeline, unevenly": run(
      strategy, records.skip(1), shard=shard
    ),
    "on stall": run(
      strategy,
      records,
      echo={"echo_after": "decode", "max_factor": FACTOR},
      timeline=Timeline(
        batch_size=BATCH_SIZE, fresh_examples=EXAMPLES, factor=1
      ),
    ),
    "epochs of fresh examples": steps_of_fresh_epochs(strategy, records),
    "refused": refusal(
      strategy, records, shard={"num_shards": 3, "shard_index": worker}
    ),
  }
  print(json.dumps(reports), flush=True)


if __name__ == "__main__":
  main(*sys.argv[1:])
