"""Trainings whose storage hangs for a while, or for good, with echo_on_stall.

Storage is a server, which goes on when the test says so: nothing goes by the
clock, but a test that fails may wait for as long as its patience lasts.
"""

import keras
import pytest
import tensorflow as tf
from stores import PATIENCE, HttpStore

import tfecho

pytestmark = pytest.mark.usefixtures("native_ops")

BATCH = 4
EXAMPLES = 64
MAX_FACTOR = 3
# Those that arrive before storage hangs: more than the warm-up takes, in which
# nothing is repeated.
ARRIVED = 40
# Of them, each as often as allowed.
STEPS_WITHOUT = ARRIVED * MAX_FACTOR // BATCH


@pytest.fixture
def store():
  contents = {f"{i}.txt": str(i).encode() for i in range(EXAMPLES)}
  with HttpStore(contents) as store:
    yield store


def fault(store, what):
  """Lets all requests go wrong from the moment when `ARRIVED` have arrived."""
  for i in range(ARRIVED, EXAMPLES):
    store.faults[f"{i}.txt"] = list(what)


def batches(store, echo_after, stats):
  """The numbers in the objects, as pairs to train on."""
  options = tf.data.Options()
  options.threading.private_threadpool_size = 8
  names = [store.url(f"{i}.txt") for i in range(EXAMPLES)]

  def decode(contents):
    number = tf.strings.to_number(contents)
    return number[None], number[None]

  pipeline = tfecho.Pipeline(
    tf.data.Dataset.from_tensor_slices(names).with_options(options),
    read=tfecho.remote.reader(
      attempts=2, wait_seconds=1e-3, timeout_seconds=PATIENCE
    ),
    decode=decode,
    batch_size=BATCH,
  )
  return pipeline.dataset(
    echo_after=echo_after,
    max_factor=MAX_FACTOR,
    # By default, few batches are kept: not all of those that arrive.
    echo_buffer=EXAMPLES // BATCH if echo_after == "batch" else None,
    stats=stats,
  )


def fit(dataset, *, steps, after_step=lambda step: None):
  """Trains, and returns how many steps there were."""
  model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
  model.compile(keras.optimizers.SGD(1e-6), "mse")
  callback = keras.callbacks.LambdaCallback(
    on_train_batch_end=lambda batch, logs: after_step(batch + 1)
  )
  model.fit(dataset, steps_per_epoch=steps, verbose=0, callbacks=[callback])
  return int(model.optimizer.iterations)


@pytest.mark.parametrize(
  # examples in what is repeated
  ("echo_after", "examples"),
  [("read", 1), ("decode", 1), ("batch", BATCH)],
)
def test_a_training_goes_on_without_its_storage_waits_and_goes_on_with_it(
  store, echo_after, examples
):
  fault(store, ["wait"])
  stats = tfecho.Stats()
  seen = {}

  def after_step(step):
    if step == STEPS_WITHOUT:
      # All that may be repeated has been: the next step has to wait.
      seen.update(emitted=stats.emitted, consumed=stats.consumed)
      store.resumed.set()

  steps = STEPS_WITHOUT + 5
  dataset = batches(store, echo_after, stats)
  assert fit(dataset, steps=steps, after_step=after_step) == steps
  assert seen == {
    "emitted": STEPS_WITHOUT * BATCH // examples,
    "consumed": ARRIVED // examples,
  }
  assert stats.consumed > ARRIVED // examples


def test_a_storage_that_is_dead_is_named(store):
  fault(store, [503] * 99)
  stats = tfecho.Stats()
  steps = []
  with pytest.raises(tf.errors.OpError, match=store.url(f"{ARRIVED}.txt")):
    fit(batches(store, "decode", stats), steps=100, after_step=steps.append)
  # What had arrived was trained on, but for the batch that was begun.
  assert len(steps) >= ARRIVED // BATCH - 1
