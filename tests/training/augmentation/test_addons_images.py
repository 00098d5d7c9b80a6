"""Operations of tensorflow-addons as augmentations, and beside ours."""

import itertools
import math

import numpy as np
import pytest
import tensorflow as tf

import tfecho
from tfecho.training.augmentation import colour, geometry

tfa = pytest.importorskip(
  "tensorflow_addons", reason="needs the extra `addons`, and so TensorFlow 2.15"
)


def ours(name, image, strength):
  """What our operation makes of one image, uint8."""
  images = tf.cast(image, tf.float32)[None]
  strengths = tf.constant([strength], tf.float32)
  if name in colour.OPERATIONS:
    changed = colour.OPERATIONS[name](images, strengths)
  else:
    transforms = geometry.TRANSFORMS[name](strengths, *images.shape[1:3])
    changed = geometry.warp(images, transforms, fill=0.0)
  return np.round(changed[0].numpy())


def theirs(name, image, strength):
  image = tf.constant(image)
  functions = {
    "rotate": lambda: tfa.image.rotate(image, math.radians(strength)),
    "translate_x": lambda: tfa.image.translate(image, [-strength, 0]),
    "translate_y": lambda: tfa.image.translate(image, [0, -strength]),
    "equalize": lambda: tfa.image.equalize(image),
    "sharpness": lambda: tfa.image.sharpness(image, strength),
  }
  return functions[name]().numpy().astype(np.float32)


@pytest.mark.parametrize(
  # operation, strength, levels that a pixel may be off, share that is further
  ("name", "strength", "tolerance", "share"),
  [
    ("rotate", 30, 0, 0.01),  # where two pixels are as near
    ("rotate", -17, 0, 0.01),
    ("translate_x", 7, 0, 0),
    ("translate_y", -5, 0, 0),
    ("equalize", 0, 1, 0),
    ("sharpness", 0.1, 1, 0),
    ("sharpness", 1.9, 1, 0),
  ],
)
def test_they_agree_with_ours(photo, name, strength, tolerance, share):
  off = np.abs(ours(name, photo, strength) - theirs(name, photo, strength))
  assert (off.max(axis=-1) > tolerance).mean() <= share


def test_they_augment_every_copy_anew_and_can_be_saved(
  photo, implementation, tmp_path
):
  def turn(image, seed):
    angle = tf.random.stateless_uniform([], seed, -0.5, 0.5)
    return tfa.image.equalize(tfa.image.rotate(image, angle))

  def images():
    pipeline = tfecho.Pipeline(
      tf.data.Dataset.range(4),
      decode=lambda number: tf.constant(photo),
      augment=turn,
      batch_size=2,
      seed=1,
    )
    return iter(
      pipeline.dataset(
        echo_after="decode",
        factor=2,
        repeat=True,
        implementation=implementation,
      )
    )

  def batches(iterator, count):
    return [batch.numpy() for batch in itertools.islice(iterator, count)]

  whole = batches(images(), 6)
  assert len({image.tobytes() for batch in whole for image in batch}) == 12

  iterator = images()
  batches(iterator, 3)
  path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "it"))
  again = images()
  tf.train.Checkpoint(iterator=again).read(path).assert_consumed()
  np.testing.assert_array_equal(batches(again, 3), whole[3:])
