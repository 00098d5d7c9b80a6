"""Pipelines and training steps that `tfecho.advise` has to judge.

    workload = WORKLOADS[0]
    pipeline, step = workload.start()

Between them they wait and compute, before, between and behind the places of an
echo, beside a training on an accelerator (here a sleep, which leaves the
processor alone) and on the processor.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping

import tensorflow as tf

import tfecho

IMAGE_SIZE = 160
CROP_SIZE = 128
READ_SECONDS = 0.004  # a request to a storage that serves many at once


@dataclasses.dataclass(frozen=True)
class Workload:
  """A pipeline and what it feeds.

  Attributes:
    what: a name for people.
    source: makes the dataset that the pipeline starts from.
    stages: functions of the pipeline by name, in order; "decode" or "read" is
      among them.
    step: makes the training step, a function of a batch.
    batch_size: examples in a batch.
  """

  what: str
  source: Callable[[], tf.data.Dataset]
  stages: Mapping[str, Callable]
  step: Callable[[], Callable]
  batch_size: int

  @property
  def places(self):
    """Where an echo can stand."""
    return (*self.stages, "batch")

  def start(self):
    """Returns the pipeline and its training step."""
    pipeline = tfecho.Pipeline(
      self.source(), batch_size=self.batch_size, **self.stages
    )
    return pipeline, self.step()


def _jpegs():
  """Records of one image, over and over."""
  coarse = tf.random.stateless_uniform([20, 20, 3], seed=[1, 2], maxval=255)
  image = tf.image.resize(coarse, [IMAGE_SIZE, IMAGE_SIZE])
  record = tf.io.encode_jpeg(tf.cast(image, tf.uint8))
  return tf.data.Dataset.from_tensors(record).repeat()


def _numbers():
  return tf.data.Dataset.range(10**9)


def _read_slowly(record):
  def wait(record):
    time.sleep(READ_SECONDS)
    return record

  read = tf.numpy_function(wait, [record], tf.string, stateful=False)
  return tf.ensure_shape(read, [])


def _decode_jpeg(record):
  image = tf.io.decode_jpeg(record, channels=3)
  return tf.ensure_shape(image, [IMAGE_SIZE, IMAGE_SIZE, 3])


def _crop(image, seed):
  size = [CROP_SIZE, CROP_SIZE, 3]
  return tf.image.stateless_random_crop(image, size, seed)


def _crop_and_recolour(image, seed):
  image = tf.image.convert_image_dtype(_crop(image, seed), tf.float32)
  image = tf.image.stateless_random_hue(image, 0.2, seed)
  return tf.image.stateless_random_saturation(image, 0.5, 1.5, seed)


def _scale(image):
  """What is left to do if the source decodes by itself."""
  return tf.cast(image, tf.float32) / 255.0


def _tokens(number):
  return tf.range(128) + tf.cast(number, tf.int32)


def _large_example(number):
  return tf.fill([256, 256, 3], tf.cast(number, tf.float32))


def _accelerator(seconds):
  """Makes a step during which the processor is free."""
  return lambda: lambda batch: time.sleep(seconds)


def _processor(size, layers):
  """Makes a step that multiplies matrices on all cores."""

  def make():
    weights = tf.Variable(tf.random.normal([size, size]))

    @tf.function
    def step(batch):
      first = tf.cast(tf.reshape(batch, [-1])[0], tf.float32)
      x = weights + 1e-9 * first
      for _ in range(layers):
        x = tf.nn.tanh(x @ weights)
      return tf.reduce_sum(x)

    # Waits for the result, as a training does that looks at its loss.
    return lambda batch: step(batch).numpy()

  return make


WORKLOADS = (
  Workload(
    "slow storage",
    _jpegs,
    {"read": _read_slowly, "decode": _decode_jpeg, "augment": _crop},
    _accelerator(0.012),
    16,
  ),
  Workload(
    "slow storage, training on the processor",
    _jpegs,
    {"read": _read_slowly, "decode": _decode_jpeg, "augment": _crop},
    _processor(256, 12),
    16,
  ),
  Workload(
    "JPEG decoding",
    _jpegs,
    {"decode": _decode_jpeg, "augment": _crop},
    _accelerator(0.005),
    32,
  ),
  Workload(
    "JPEG decoding, training on the processor",
    _jpegs,
    {"decode": _decode_jpeg, "augment": _crop},
    _processor(256, 12),
    32,
  ),
  Workload(
    "heavy augmentation",
    _jpegs,
    {"decode": _decode_jpeg, "augment": _crop_and_recolour},
    _accelerator(0.005),
    16,
  ),
  Workload(
    "storage, decoding and augmentation",
    _jpegs,
    {"read": _read_slowly, "decode": _decode_jpeg,
     "augment": _crop_and_recolour},
    _accelerator(0.010),
    16,
  ),
  Workload(
    "not input-bound",
    _jpegs,
    {"decode": _decode_jpeg, "augment": _crop},
    _accelerator(0.040),
    16,
  ),
  Workload(
    "small text",
    _numbers,
    {"decode": _tokens},
    _processor(64, 2),
    64,
  ),
  Workload(
    "work on batches",
    _numbers,
    {"decode": _large_example},
    _accelerator(0.004),
    32,
  ),
  Workload(
    "decoding in a serial source",
    lambda: _jpegs().map(_decode_jpeg),
    {"decode": _scale},
    _accelerator(0.008),
    32,
  ),
)
