"""Object detection with SSD300 on a ResNet-34.

| preset | network | default boxes | data | images |
|---|---|---|---|---|
| `small` | ResNet-7 | 756 | 1,500 scenes of digits | 96x96 |
| `paper` | ResNet-34 | 8,732 | COCO 2017, 118,287 files | 300x300 |

The scenes are JPEG files with scikit-learn's digits on its photographs.

    read      the file, encoded, and what is in the image, as one array
    decode    all of its pixels
    augment   expand, crop, mirror, recolour; resized once
    batch

Which default box stands for which object is found out in the loss, on the
accelerator: labels are a few rows an image, in the buffers of an echo, too.
"""

import functools

import keras
import tensorflow as tf

from experiments.data import prepared, scenes
from experiments.workloads.classification import momentum, reader
from experiments.workloads.ssd import network
from experiments.workloads.ssd import objects as columns
from experiments.workloads.ssd.augmentation import augmentation, resized
from experiments.workloads.ssd.average_precision import MeanAveragePrecision
from experiments.workloads.ssd.boxes import SSD300, Level, default_boxes
from experiments.workloads.ssd.loss import MultiBoxLoss
from experiments.workloads.workload import Workload
from tfecho.training import schedules

_SIZE = 300  # pixels
_CLASSES = 80
_MOST_OBJECTS = 100  # of an image; 93 are the most that there are in COCO 2017

_SCENES_LEVELS = (
  Level(12, 8, 16, 28, (2,)),
  Level(6, 16, 28, 44, (2,)),
  Level(3, 32, 44, 64, (2,)),
)
_SCENES_EXTRAS = (network.Extra(32, 64, 2), network.Extra(32, 64, 2))


def small():
  """The same with 8 to 64 channels, on scenes of 96x96 pixels.

  Digits are neither mirrored nor made much smaller, since nobody could tell
  them then.
  """
  return _workload(
    preset="small",
    description="small SSD on scenes of scikit-learn's digits and photographs",
    size=scenes.SIZE,
    classes=scenes.CLASSES,
    levels=_SCENES_LEVELS,
    network={"blocks": (1, 1, 1), "width": 16, "extras": _SCENES_EXTRAS},
    train_examples=scenes.TRAIN_EXAMPLES,
    batch_size=32,
    train=lambda: tf.data.Dataset.range(scenes.TRAIN_EXAMPLES),
    read=_scenes_reader(scenes.train()),
    validation=_scenes_validation,
    augment=augmentation(
      scenes.SIZE, expansion=1.3, least_side=0.7, mirror=False
    ),
    optimizer=keras.optimizers.Adam,
    learning_rate=schedules.cosine(0.003, warmup="0.05dur"),
    length="60ep",
    targets=(0.20, 0.30, 0.40, 0.50, 0.60),
    max_steps=6_000,
    evaluation_steps=50,
  )


def paper():
  """SSD300 on COCO, the form and the recipe of MLPerf's benchmark.

  Two things differ. The backbone starts from newly drawn weights, not from
  those of a classifier of ImageNet, so that the workload needs nothing but its
  data; the highest targets are for longer training than the recipe's. And
  images are expanded, as in the paper, which finds that to help small objects.

  The learning rate is for 32 images a step; more take one that is as many times
  as large. The metric is COCO's mean average precision on 5,000 images.

  Raises:
    ValueError: If the data are not on disk.
  """
  records = _coco("train")
  return _workload(
    preset="paper",
    description="SSD300 with ResNet-34 on COCO, expand, crop, flip, recolour",
    size=_SIZE,
    classes=_CLASSES,
    levels=SSD300,
    network={},
    train_examples=len(records),
    batch_size=32,
    train=lambda: records,
    # Of 160 kB each; the files were shuffled, too, when they were prepared.
    shuffle_buffer=8_192,
    read=_fields,
    validation=_coco_validation,
    augment=augmentation(_SIZE),
    optimizer=functools.partial(momentum, weight_decay=5e-4),
    learning_rate=schedules.multi_step(
      2.5e-3, ["43ep", "54ep"], warmup="1ep"
    ),
    length="65ep",
    targets=(0.10, 0.15, 0.18, 0.20, 0.212, 0.23),
    max_steps=250_000,
    evaluation_steps=3_697,  # about an epoch
  )


PRESETS = {"small": small, "paper": paper}


def _workload(*, size, classes, levels, network, **fields):
  defaults = default_boxes(size, levels)
  return Workload(
    name="ssd_coco",
    decode=_decode,
    model=lambda: _detector(size, levels, classes=classes, **network),
    loss=lambda: MultiBoxLoss(defaults),
    metric=lambda: MeanAveragePrecision(defaults, classes=classes),
    metric_name="COCO mAP",
    maximize=True,
    localized=True,
    **fields,
  )


def _detector(*args, **options):
  return network.detector(*args, **options)


def _decode(contents, objects):
  return tf.io.decode_jpeg(contents, channels=3), objects


def _resized(files, size, batch_size):
  images = files.map(
    lambda *file: resized(size)(*_decode(*file)),
    num_parallel_calls=tf.data.AUTOTUNE,
  )
  return images.batch(batch_size)


def _coco(split):
  return prepared.load(
    "coco/2017", split, ["image", "objects"], encoded=["image"]
  )


def _fields(record):
  objects = record["objects"]
  packed = columns.pack(
    objects["bbox"],
    objects["label"] + 1,
    objects["is_crowd"],
    rows=_MOST_OBJECTS,
  )
  return record["image"], packed


def _coco_validation():
  files = _coco("validation").map(_fields)
  return _resized(files, _SIZE, 50).prefetch(tf.data.AUTOTUNE)


def _scenes_reader(data):
  classes = [labels + 1 for labels in data.labels]
  objects = columns.pack_all(data.boxes, classes, rows=scenes.MOST_DIGITS)
  return reader(data.files, objects)


def _scenes_validation():
  keys = tf.data.Dataset.range(scenes.VALIDATION_EXAMPLES)
  files = keys.map(_scenes_reader(scenes.validation()))
  return _resized(files, scenes.SIZE, 50).cache()
