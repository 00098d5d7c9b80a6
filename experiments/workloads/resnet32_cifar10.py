"""Image classification with a residual network of the CIFAR family.

Preset `small` is ResNet-8 on scikit-learn's handwritten digits: sizes at which
two CPU cores reach the target in seconds.
"""

import keras
import tensorflow as tf

from experiments.data import digits
from experiments.workloads import resnet
from experiments.workloads.workload import Workload
from tfecho.training import schedules

_DIGITS_SIZE = 16  # pixels; 8x8 would leave nothing to the third stage
_DIGITS_PADDING = 2  # pixels on every side, before the random crop


def small():
  """ResNet-8 on 1,297 digits of 16x16 pixels, with pad and random crop."""
  shape = (_DIGITS_SIZE, _DIGITS_SIZE, 1)
  return Workload(
    name="resnet32_cifar10",
    preset="small",
    description="ResNet-8 on scikit-learn's digits, 16x16, pad and crop",
    train_examples=digits.TRAIN_EXAMPLES,
    batch_size=32,
    train=lambda: tf.data.Dataset.range(digits.TRAIN_EXAMPLES),
    validation=_digits_validation,
    read=_reader(*digits.train()),
    decode=_decode_digit,
    augment=_pad_and_crop,
    model=lambda: resnet.cifar_resnet(8, input_shape=shape, classes=10),
    optimizer=keras.optimizers.Adam,
    loss=_cross_entropy,
    learning_rate=schedules.cosine(0.002, warmup="1ep"),
    length="30ep",
    metric=keras.metrics.SparseCategoricalAccuracy,
    metric_name="validation accuracy",
    maximize=True,
    targets=(0.95, 0.97, 0.98, 0.985, 0.99),
    max_steps=3_000,
    evaluation_steps=20,
  )


PRESETS = {"small": small}


def _cross_entropy():
  return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def _reader(images, labels):
  """Returns a `read` that looks a record up in arrays."""
  return lambda key: (tf.gather(images, key), tf.gather(labels, key))


def _decode_digit(image, label):
  image = tf.image.resize(image, (_DIGITS_SIZE, _DIGITS_SIZE))
  return image / digits.MAX_PIXEL, label


def _pad_and_crop(image, label, seed):
  padding = [_DIGITS_PADDING, _DIGITS_PADDING]
  padded = tf.pad(image, [padding, padding, [0, 0]])
  return tf.image.stateless_random_crop(padded, image.shape, seed), label


def _digits_validation():
  read = _reader(*digits.validation())
  keys = tf.data.Dataset.range(digits.VALIDATION_EXAMPLES)
  examples = keys.map(read).map(_decode_digit)
  return examples.batch(250).cache()
