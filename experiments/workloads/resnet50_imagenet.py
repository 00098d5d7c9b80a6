"""Image classification with ResNet-50, from JPEG files.

| preset | network | data | crops |
|---|---|---|---|
| `small` | ResNet-14 | 1,297 of scikit-learn's digits as JPEG files | 32x32 |
| `large_files` | ResNet-8 on patches | the same, enlarged | 160x160 |
| `paper` | ResNet-50 | ImageNet, 1,281,167 JPEG files | 224x224 |
| `paper_fused` | the same | the same | the same |

The stages are those of the paper on data echoing (arXiv 1907.05550), so that an
echo can stand in each of its places:

    read      the file, encoded
    decode    all of its pixels
    augment   a window of them, scaled; maybe its mirror
    batch

What is repeated after decode gets another window. Where nothing is repeated
there, decoding all of a file is a waste: `paper_fused` hands the file on and
decodes in `augment`, once the window is known, and nothing but the window. That
is the faster pipeline without an echo and with one after read; an echo after
decode is the same there as one after read.

In `large_files` the input is dearer than the training, most of all with
`--augmentation=rand`: there training waits without any delay.
"""

import functools

import keras
import tensorflow as tf

import tfecho
from experiments.data import digits, jpegs, prepared
from experiments.workloads import resnet
from experiments.workloads.classification import (
  classification,
  momentum,
  reader,
)
from tfecho.training import schedules

_CROP_SIZE = 224
_BLOCKS = (3, 4, 6, 3)


def small():
  """ResNet-14 with 8 to 64 channels on digits, as JPEG files of 40x40 pixels.

  Crops are a half of the image at least, since of less nobody could tell the
  digit, and they are not mirrored.
  """
  return _digits(
    preset="small",
    description="ResNet-14 on scikit-learn's digits as JPEG files, crops",
    size=40,
    crop_size=32,
    batch_size=32,
    targets=(0.80, 0.90, 0.93, 0.95),
    evaluation_steps=20,
    model=lambda: resnet.bottleneck_resnet(
      (1, 1, 1, 1),
      width=8,
      input_shape=(32, 32, 3),
      classes=digits.CLASSES,
    ),
  )


def large_files():
  """ResNet-8 on patches of 20x20, and JPEG files of 192x192 pixels.

  It stands for a network on an accelerator: one that looks at every pixel would
  take longer on two CPU cores than all of the input.
  """
  return _digits(
    preset="large_files",
    description=(
      "ResNet-8 on patches, scikit-learn's digits as large JPEG files, crops"
    ),
    size=192,
    crop_size=160,
    model=lambda: resnet.patch_resnet(
      8,
      patch_size=20,
      pixel_stride=5,
      input_shape=(160, 160, 3),
      classes=digits.CLASSES,
    ),
    batch_size=64,
    targets=(0.90, 0.95, 0.97),
    evaluation_steps=40,
  )


def paper():
  """ResNet-50 on ImageNet: 25.6 M parameters, 90 epochs.

  The learning rate rises for five epochs and falls as a half cosine. It is for
  256 examples a step; more take one that is as many times as large (Goyal et
  al., arXiv 1706.02677). The metric is top-1 accuracy on one central crop.

  Raises:
    ValueError: If the data are not on disk.
  """
  return _imagenet("paper", augment=_augment(tfecho.images.random_crop))


def paper_fused():
  """The same, with one operation that decodes no more than the crop.

  Raises:
    ValueError: If the data are not on disk.
  """
  return _imagenet(
    "paper_fused",
    decode=lambda contents, label: (contents, label),
    augment=_augment(tfecho.images.decode_and_random_crop),
  )


PRESETS = {
  "small": small,
  "large_files": large_files,
  "paper": paper,
  "paper_fused": paper_fused,
}


def _digits(*, size, crop_size, **fields):
  return _workload(
    train_examples=digits.TRAIN_EXAMPLES,
    train=lambda: tf.data.Dataset.range(digits.TRAIN_EXAMPLES),
    read=reader(*_digits_files(digits.train, size)),
    validation=lambda: _digits_validation(size, crop_size),
    augment=_augment(
      tfecho.images.random_crop, crop_size, mirror=False, area=(0.5, 1.0)
    ),
    optimizer=keras.optimizers.Adam,
    learning_rate=schedules.cosine(0.002, warmup="0.05dur"),
    length="30ep",
    max_steps=3_000,
    **fields,
  )


def _imagenet(preset, **stages):
  records = _imagenet_records("train")
  return _workload(
    preset=preset,
    description="ResNet-50 on ImageNet, random crop and flip",
    train_examples=len(records),
    batch_size=256,
    train=lambda: records,
    # Of 110 kB each; the files were shuffled, too, when they were prepared.
    shuffle_buffer=16_384,
    read=_fields,
    validation=_imagenet_validation,
    model=lambda: resnet.bottleneck_resnet(
      _BLOCKS, input_shape=(_CROP_SIZE, _CROP_SIZE, 3), classes=1_000
    ),
    optimizer=momentum,
    learning_rate=schedules.cosine(0.1, warmup="5ep"),
    length="90ep",
    targets=(0.60, 0.70, 0.73, 0.75, 0.765),
    max_steps=450_000,
    evaluation_steps=5_000,  # about an epoch
    **stages,
  )


def _workload(*, decode=None, **fields):
  return classification(
    name="resnet50_imagenet", decode=decode or _decode, **fields
  )


def _decode(contents, label):
  return tf.io.decode_jpeg(contents, channels=3), label


def _augment(crop, size=_CROP_SIZE, *, mirror=True, **options):
  def augment(image, label, seed):
    crop_seed, mirror_seed = tf.unstack(tf.random.split(seed))
    image = crop(image, size, seed=crop_seed, **options)
    if mirror:
      image = tf.image.stateless_random_flip_left_right(image, mirror_seed)
    return image, label

  return augment


def _imagenet_records(split):
  features = ["image", "label"]
  return prepared.load("imagenet2012", split, features, encoded=["image"])


def _fields(record):
  return record["image"], record["label"]


def _imagenet_validation():
  files = _imagenet_records("validation").map(_fields)
  return _center_crops(files, _CROP_SIZE)


@functools.cache
def _digits_files(split, size):
  """JPEG files and labels, made once."""
  images, labels = split()
  pixels = images * (255 / digits.MAX_PIXEL)
  return jpegs.encode(pixels, size), labels


def _digits_validation(size, crop_size):
  keys = tf.data.Dataset.range(digits.VALIDATION_EXAMPLES)
  files = keys.map(reader(*_digits_files(digits.validation, size)))
  return _center_crops(files, crop_size).cache()


def _center_crops(files, size):
  def crop(contents, label):
    return tfecho.images.decode_and_center_crop(contents, size), label

  crops = files.map(crop, num_parallel_calls=tf.data.AUTOTUNE)
  return crops.batch(250).prefetch(tf.data.AUTOTUNE)
