"""What augmentations cost, on the host and on the device.

    python -m experiments.benchmark --suite=augmentation

Costs are in microseconds per image, uint8, of 32x32 and 224x224: on the host in
tf.data, as parallel as `Pipeline` runs them; on the device in a compiled
function, on batches. And in milliseconds per training step of a small network,
ResNet-8 on batches of 128 images of 32x32, that is fed by the first or has the
second in front.

Everything is compared with `crop_flip`, which is what training without any of
them does. Bounded is what holds whatever the machine: TrivialAugment does one
operation, RandAugment two, AugMix three to nine. Each is bounded as a ratio to
the next one, beside which the ratios to `crop_flip` are reported.
"""

import functools
import time

import keras
import tensorflow as tf

from experiments.benchmark import drive
from experiments.benchmark.runner import Bound, Case
from experiments.workloads import resnet
from tfecho.training import augmentation
from tfecho.training.augmentation import keras_layers

BASELINE = "crop_flip"
BATCH_SIZE = 128
CLASSES = 10
SIZES = (32, 224)
SMALL = 32

# On the host, the first may not cost more than the second.
CHEAPER = (("trivial", "rand"), ("rand", "augmix"))

_BATCHES = {32: 128, 224: 16}  # images
_STRIDES = {32: 512, 224: 32}  # images drawn at a time
_STEPS = 4
# What is bounded differs by half and more, and getting ready takes longer.
_ROUNDS = 3


def cases():
  """Costs of images on either side, and of training steps."""
  return [
    *(_host(size) for size in SIZES),
    *(_device(size) for size in SIZES),
    _training("host"),
    _training("device"),
  ]


def _host(size):
  return Case(
    what=f"on the host, {size}x{size}",
    unit="us per image",
    contenders={
      name: functools.partial(_start_host, name, size)
      for name in augmentation.NAMES
    },
    bounds=[
      *(Bound(ours, other, 1.0) for ours, other in CHEAPER),
      *_against_baseline(augmentation.NAMES),
    ],
    max_rounds=_ROUNDS,
  )


def _device(size):
  contenders = on_device()
  return Case(
    what=f"on the device, batches of {_BATCHES[size]}, {size}x{size}",
    unit="us per image",
    contenders={
      name: functools.partial(_start_device, make, size)
      for name, make in contenders.items()
    },
    bounds=_against_baseline(contenders),
    max_rounds=_ROUNDS,
  )


def _training(side):
  names = augmentation.NAMES if side == "host" else on_device()
  start = _start_fed if side == "host" else _start_augmenting
  return Case(
    what=f"training ResNet-8, augmented on the {side}",
    unit="ms per step",
    contenders={name: functools.partial(start, name) for name in names},
    bounds=_against_baseline(names),
    max_rounds=_ROUNDS,
  )


def _against_baseline(names):
  return [Bound(name, BASELINE) for name in names if name != BASELINE]


def on_device():
  """By name, what makes them: ours, and those that Keras has a layer for."""
  of_keras = [name for name in augmentation.NAMES if keras_layers.has(name)]
  return {
    **{name: _maker(name, "own") for name in augmentation.NAMES},
    **{f"{name} of Keras": _maker(name, "keras") for name in of_keras},
  }


def _maker(name, layers):
  return lambda: augmentation.get(name, side="device", layers=layers)


# --- The host ---------------------------------------------------------------


def _start_host(name, size):
  cost = drive.cost_of(
    _augmented(name, size, stride_batch(name, size)),
    stride=_STRIDES[size] // stride_batch(name, size),
    min_seconds=0.2,
  )
  return lambda: cost() / stride_batch(name, size)


def stride_batch(name, size):
  """Images in an element: mixed are whole batches."""
  return _BATCHES[size] if augmentation.get(name).on_batches else 1


def _augmented(name, size, batch_size):
  """Endless elements of images and labels, augmented on the host."""
  images, labels = _examples(size, max(batch_size, _BATCHES[size]))
  data = tf.data.Dataset.from_tensor_slices((images, labels)).repeat()
  if batch_size > 1:
    data = tf.data.Dataset.from_tensors((images, labels)).repeat()
  return data.apply(augmentation.mapped(augmentation.get(name), seed=1))


def _examples(size, count):
  pixels = tf.random.stateless_uniform(
    [count, size, size, 3], (1, 2), 0, 256, tf.int32
  )
  return tf.cast(pixels, tf.uint8), tf.one_hot(
    tf.range(count) % CLASSES, CLASSES
  )


# --- The device -------------------------------------------------------------


def _start_device(make, size):
  augment = make()
  batch = _examples(size, _BATCHES[size])

  @tf.function
  def step(number, images, labels):  # given, or it would be computed once
    return augment(images, labels, seed=tf.stack([number, number]))

  def probe():
    start = time.perf_counter()
    for number in range(_STEPS):
      # Waits for the device.
      step(tf.constant(number, tf.int64), *batch)[0].numpy()
    seconds = time.perf_counter() - start
    return 1e6 * seconds / _STEPS / _BATCHES[size]

  probe()
  return probe


# --- Training ---------------------------------------------------------------


def _start_fed(name):
  """Training steps on batches from tf.data."""
  mixes = augmentation.get(name).on_batches
  data = _augmented(name, SMALL, BATCH_SIZE if mixes else 1)
  data = data if mixes else data.batch(BATCH_SIZE, drop_remainder=True)
  return _probe(_fed_model(SMALL), iter(data.prefetch(2)))


def _start_augmenting(name):
  """Training steps that augment."""
  augment = on_device()[name]()
  model = _compiled(augmentation.in_train_step(_model(SMALL), augment, seed=1))
  batch = tf.data.Dataset.from_tensors(_examples(SMALL, BATCH_SIZE)).repeat()
  return _probe(model, iter(batch.prefetch(2)))


@functools.cache
def _fed_model(size):
  """One for all that are fed, since they differ in their input only."""
  return _compiled(_model(size))


def _compiled(model):
  loss = keras.losses.CategoricalCrossentropy(from_logits=True)
  model.compile(keras.optimizers.SGD(0.01), loss=loss)
  return model


def _probe(model, batches):
  def probe():
    # Off the clock: what was made ready while others were on it.
    for _ in range(4):
      next(batches)
    start = time.perf_counter()
    for _ in range(_STEPS):
      model.train_on_batch(*next(batches))
    return 1e3 * (time.perf_counter() - start) / _STEPS

  probe()
  return probe


def _model(size):
  network = resnet.cifar_resnet(
    8, input_shape=(size, size, 3), classes=CLASSES
  )
  inputs = keras.Input((size, size, 3), dtype="uint8")
  scaled = keras.layers.Rescaling(1 / 255)(inputs)
  return keras.Model(inputs, network(scaled))
