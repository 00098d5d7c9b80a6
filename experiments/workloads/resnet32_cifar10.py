"""Image classification with a residual network of the CIFAR family.

| preset | network | data | augmentation |
|---|---|---|---|
| `small` | ResNet-8 | 1,297 of scikit-learn's digits, 16x16 | pad, crop |
| `fashion` | ResNet-8 | 10,000 of Fashion-MNIST, 28x28 | pad, crop, flip |
| `fashion_deep` | ResNet-32 | the same | the same |
| `paper` | ResNet-32 | CIFAR-10, 32x32 | pad, crop, flip |

Two CPU cores reach the targets of `small` in seconds, those of `fashion` in
minutes, with 32 layers four times as many; `paper` is for a GPU.
"""

import keras
import tensorflow as tf

from experiments.data import digits, fashion_mnist, prepared
from experiments.workloads import resnet
from experiments.workloads.classification import (
  classification,
  crop_and_flip,
  momentum,
  pad_and_crop,
  reader,
)
from tfecho.training import schedules

_DIGITS_SIZE = 16  # pixels; 8x8 would leave nothing to the third stage
_CIFAR10_SHAPE = (32, 32, 3)


def small():
  """ResNet-8 on 1,297 digits of 16x16 pixels, with pad and random crop."""
  shape = (_DIGITS_SIZE, _DIGITS_SIZE, 1)
  return _resnet(
    8,
    digits,
    shape=shape,
    decode=_decode_digit,
    augment=pad_and_crop(2),
    preset="small",
    description="ResNet-8 on scikit-learn's digits, 16x16, pad and crop",
    batch_size=32,
    length="30ep",
    targets=(0.95, 0.97, 0.98, 0.985, 0.99),
    max_steps=3_000,
    evaluation_steps=20,
  )


def fashion():
  """ResNet-8 on 10,000 images of Fashion-MNIST, with pad, crop and flip."""
  return _on_fashion_mnist(8, preset="fashion")


def fashion_deep():
  """ResNet-32 on the same."""
  return _on_fashion_mnist(32, preset="fashion_deep")


def paper():
  """ResNet-32 on CIFAR-10, as in the papers.

  The network, the augmentation and the schedule are those of arXiv 1512.03385,
  section 4.2: 464,154 parameters, with zeros instead of projections where the
  number of channels changes. Its 64,000 steps are 164 epochs.

  Raises:
    ValueError: If the data are not on disk.
  """
  records = _cifar10("train")
  return classification(
    name="resnet32_cifar10",
    preset="paper",
    description="ResNet-32 on CIFAR-10, pad, crop and flip",
    train_examples=len(records),
    batch_size=128,
    train=lambda: records,
    validation=_cifar10_validation,
    read=_fields,
    decode=_decode_png,
    augment=crop_and_flip(4),
    model=lambda: resnet.cifar_resnet(
      32,
      input_shape=_CIFAR10_SHAPE,
      classes=10,
      shortcuts="padding",
    ),
    optimizer=momentum,
    learning_rate=schedules.multi_step(0.1, ["82ep", "123ep"]),
    length="164ep",
    targets=(0.80, 0.85, 0.88, 0.90, 0.91),
    max_steps=64_000,
    evaluation_steps=390,  # about an epoch
  )


PRESETS = {
  "small": small,
  "fashion": fashion,
  "fashion_deep": fashion_deep,
  "paper": paper,
}


def _on_fashion_mnist(depth, *, preset):
  return _resnet(
    depth,
    fashion_mnist,
    shape=fashion_mnist.IMAGE_SHAPE,
    decode=_decode_bytes,
    augment=crop_and_flip(2),
    preset=preset,
    description=(
      f"ResNet-{depth} on 10,000 of Fashion-MNIST, pad, crop and flip"
    ),
    batch_size=64,
    length="30ep",
    targets=(0.80, 0.83, 0.84, 0.86, 0.88, 0.90),
    max_steps=12_000,
    evaluation_steps=100,
  )


def _resnet(depth, data, *, shape, decode, **fields):
  """Returns a workload that holds all of its data in memory."""
  read = reader(*data.train())
  return classification(
    name="resnet32_cifar10",
    train_examples=data.TRAIN_EXAMPLES,
    train=lambda: tf.data.Dataset.range(data.TRAIN_EXAMPLES),
    validation=lambda: _validation(data, decode),
    read=read,
    decode=decode,
    model=lambda: resnet.cifar_resnet(depth, input_shape=shape, classes=10),
    optimizer=keras.optimizers.Adam,
    learning_rate=schedules.cosine(0.002, warmup="0.05dur"),
    **fields,
  )


def _validation(data, decode):
  keys = tf.data.Dataset.range(data.VALIDATION_EXAMPLES)
  examples = keys.map(reader(*data.validation())).map(decode)
  return examples.batch(250).cache()


def _decode_digit(image, label):
  image = tf.image.resize(image, (_DIGITS_SIZE, _DIGITS_SIZE))
  return image / digits.MAX_PIXEL, label


def _decode_bytes(image, label):
  return tf.cast(image, tf.float32) / 255, label


def _cifar10(split):
  features = ["image", "label"]
  return prepared.load("cifar10", split, features, encoded=["image"])


def _cifar10_validation():
  examples = _cifar10("test").map(_fields).map(
    _decode_png, num_parallel_calls=tf.data.AUTOTUNE
  )
  return examples.batch(500).cache()


def _fields(record):
  return record["image"], record["label"]


def _decode_png(contents, label):
  image = tf.ensure_shape(tf.io.decode_png(contents), _CIFAR10_SHAPE)
  return _decode_bytes(image, label)
