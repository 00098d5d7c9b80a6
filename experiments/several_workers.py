"""A training loop of one's own on several workers, under an echo.

    python -m experiments.several_workers --workers=2 --factor=4

Starts the workers as processes of this machine, each with the TF_CONFIG that it
would have on a machine of its own, and prints what each of them used and what
they came to. `fit` of Keras 3 does not work under MultiWorkerMirroredStrategy;
this loop does, with Keras 3 and 2.15.

What an echo asks for beyond what any such loop does:

*   Each worker makes a `Pipeline` of its own, and `input_context` says which
    part of the source is its own. So the examples are divided before the echo,
    and all copies of one are on one worker.
*   The data have no end, and all workers make the same number of steps: none
    waits for one that has less to read.
*   Each worker counts the fresh examples that it has used; they add up.
"""

import concurrent.futures
import json
import multiprocessing
import os
import socket

import keras
import tensorflow as tf
from absl import flags

import tfecho
from experiments import command_line
from experiments.data import digits
from tfecho.training import workers

_WORKERS = flags.DEFINE_integer(
  "workers", 2, "Number of worker processes, a count.", lower_bound=1
)
_FACTOR = flags.DEFINE_float(
  "factor", 4, "Echoing factor, in copies per fresh example.", lower_bound=1
)
_EPOCHS = flags.DEFINE_integer(
  "epochs", 10, "Passes over the fresh examples, a count.", lower_bound=1
)

BATCH_SIZE = 64  # of all workers together
LEARNING_RATE = 0.003


class Training:
  """A model, its optimizer and a step under a strategy."""

  def __init__(self, strategy):
    self._strategy = strategy
    keras.utils.set_random_seed(0)  # The same weights on every worker.
    with strategy.scope():
      self._model = _make_model()
      self._optimizer = keras.optimizers.Adam(LEARNING_RATE)
      self._optimizer.build(self._model.trainable_variables)

  @tf.function
  def step(self, images, labels):
    """One step on the batch that all workers have together."""
    self._strategy.run(self._step_here, args=(images, labels))

  def accuracy(self, images, labels):
    """The share of labels that are found."""
    found = tf.argmax(self._model(images), axis=-1)
    return float(tf.reduce_mean(tf.cast(found == labels, tf.float32)))

  def _step_here(self, images, labels):
    with tf.GradientTape() as tape:
      losses = keras.losses.sparse_categorical_crossentropy(
        labels, self._model(images, training=True), from_logits=True
      )
      loss = tf.reduce_sum(losses) / BATCH_SIZE
    variables = self._model.trainable_variables
    gradients = tape.gradient(loss, variables)
    # Adds up the gradients of all workers.
    self._optimizer.apply_gradients(zip(gradients, variables))


def train(factor, epochs):
  """Trains as one of the workers that TF_CONFIG describes.

  Args:
    factor: Echoing factor.
    epochs: Passes over the fresh examples of all workers.

  Returns:
    A dict of `steps`; `used`, the fresh examples that this worker has used,
    with those that wait behind the echo, and `used_by_all`; and `accuracy`, on
    the validation set.
  """
  strategy = tf.distribute.MultiWorkerMirroredStrategy()
  stats = tfecho.Stats()
  data = strategy.distribute_datasets_from_function(
    lambda context: _batches(context, factor, stats)
  )
  training = Training(strategy)
  steps = round(epochs * factor * digits.TRAIN_EXAMPLES / BATCH_SIZE)
  batches = iter(data)
  for _ in range(steps):
    training.step(*next(batches))
  used = stats.consumed
  return {
    "steps": steps,
    "used": used,
    "used_by_all": int(workers.total({"used": used}, strategy)["used"]),
    "accuracy": training.accuracy(*_decode(*digits.validation())),
  }


def _batches(context, factor, stats):
  """Returns the batches of one worker: its part of the data, echoed."""
  pipeline = tfecho.Pipeline(
    tf.data.Dataset.from_tensor_slices(digits.train()),
    decode=_decode,
    batch_size=context.get_per_replica_batch_size(BATCH_SIZE),
    shuffle_buffer=digits.TRAIN_EXAMPLES,
    input_context=context,
    seed=0,
  )
  return pipeline.dataset(
    echo_after="decode", factor=factor, repeat=True, stats=stats
  )


def _decode(image, label):
  return tf.cast(image, tf.float32) / digits.MAX_PIXEL, label


def _make_model():
  return keras.Sequential(
    [
      keras.Input((8, 8, 1)),
      keras.layers.Flatten(),
      keras.layers.Dense(64, activation="relu"),
      keras.layers.Dense(digits.CLASSES),
    ]
  )


# --- The processes ----------------------------------------------------------


def run_workers(count, factor, epochs):
  """Returns what `train` does on each of so many processes."""
  spawn = multiprocessing.get_context("spawn")  # TensorFlow does not fork.
  cluster = {"worker": [f"127.0.0.1:{port}" for port in _ports(count)]}
  with concurrent.futures.ProcessPoolExecutor(count, spawn) as pool:
    futures = [
      pool.submit(_as_worker, cluster, index, factor, epochs)
      for index in range(count)
    ]
    return [future.result() for future in futures]


def _as_worker(cluster, index, factor, epochs):
  task = {"type": "worker", "index": index}
  os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": task})
  return train(factor, epochs)


def _ports(count):
  """Ports that nobody uses at the moment."""
  servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
  ports = [server.getsockname()[1] for server in servers]
  for server in servers:
    server.close()
  return ports


def main():
  reports = run_workers(_WORKERS.value, _FACTOR.value, _EPOCHS.value)
  for index, report in enumerate(reports):
    print(f"worker {index}: {report['used']:,} fresh examples used")
  last = reports[-1]
  print(
    f"together: {last['used_by_all']:,} in {last['steps']:,} steps,"
    f" {last['accuracy']:.1%} right"
  )


if __name__ == "__main__":
  command_line.run(main)
