"""Augmentations in a `Pipeline`: behind an echo, saved, and measured."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from backends import needs_tensorflow
from iterators import with_options

import tfecho
from tfecho.training import augmentation

RANDOM = ["crop_flip", "trivial", "rand", "augmix", "auto"]
EXAMPLES, BATCH_SIZE, FACTOR = 6, 4, 4
# Batches before a save and behind it: the 6 images come anew in between.
BEFORE, BEHIND = 3, 7


def decode(number):
  """A picture of waves that is unlike every other one, and its number."""
  waves = tf.sin(tf.range(16 * 20 * 3, dtype=tf.float32) / 7.0 + number)
  pixels = tf.reshape(127.0 * (waves + 1.0), [16, 20, 3])
  return tf.cast(pixels, tf.uint8), number


def pipeline(augment, *, seed=1):
  return tfecho.Pipeline(
    tf.data.Dataset.range(EXAMPLES).map(lambda n: tf.cast(n, tf.float32)),
    decode=decode,
    augment=augment,
    batch_size=BATCH_SIZE,
    seed=seed,
  )


def echoed(name, implementation, **options):
  data = pipeline(augmentation.get(name, **options)).dataset(
    echo_after="decode",
    factor=FACTOR,
    echo_buffer=2 * BATCH_SIZE,
    repeat=True,
    implementation=implementation,
  )
  return with_options(data)


def batches(iterator, count):
  return [
    (images.numpy(), numbers.numpy())
    for images, numbers in itertools.islice(iterator, count)
  ]


def assert_same(one, other):
  assert len(one) == len(other)
  for (images, numbers), (other_images, other_numbers) in zip(one, other):
    np.testing.assert_array_equal(numbers, other_numbers)
    np.testing.assert_array_equal(images, other_images)


def copies_of_each(found):
  """How many different looks every image has, among how many copies."""
  images = np.concatenate([images for images, _ in found])
  numbers = np.concatenate([numbers for _, numbers in found])
  for number in np.unique(numbers):
    copies = images[numbers == number]
    yield len(np.unique(copies.reshape(len(copies), -1), axis=0)), len(copies)


@pytest.mark.parametrize("name", RANDOM)
def test_copies_look_different_also_after_a_restore(name, tmp_path):
  check_copies_and_restore(name, "graph", tmp_path)


def test_so_they_do_behind_either_echo(implementation, tmp_path):
  check_copies_and_restore("crop_flip", implementation, tmp_path)


def check_copies_and_restore(name, implementation, tmp_path):
  uninterrupted = batches(iter(echoed(name, implementation)), BEFORE + BEHIND)
  looks = list(copies_of_each(uninterrupted))
  assert len(looks) == EXAMPLES
  # Two draws may come to the same, such as equalizing in any strength.
  assert sum(different for different, _ in looks) > 0.5 * sum(
    copies for _, copies in looks
  )

  iterator = iter(echoed(name, implementation))
  assert_same(batches(iterator, BEFORE), uninterrupted[:BEFORE])
  path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "it"))
  again = iter(echoed(name, implementation))
  tf.train.Checkpoint(iterator=again).read(path).assert_consumed()
  assert_same(batches(again, BEHIND), uninterrupted[BEFORE:])


def test_without_a_seed_runs_differ():
  augment = augmentation.get("crop_flip")
  one, other = (
    batches(iter(pipeline(augment, seed=None).dataset()), 2) for _ in range(2)
  )
  assert any(np.any(a[0] != b[0]) for a, b in zip(one, other))


class TestSides:
  def test_a_pipeline_shows_what_augments(self):
    text = str(pipeline(augmentation.get("rand")))
    assert "augment  rand, with seeds" in text

  @needs_tensorflow
  @pytest.mark.parametrize("name", augmentation.NAMES)
  def test_a_pipeline_refuses_what_is_for_the_device(self, name):
    augment = augmentation.get(name, side="device")
    message = f"`augment` is {name} for the device: .*in_train_step"
    with pytest.raises(ValueError, match=message):
      pipeline(augment)

  @needs_tensorflow
  def test_mapped_refuses_what_is_for_the_device(self):
    with pytest.raises(ValueError, match="`augment` must be .* for the host"):
      augmentation.mapped(augmentation.get("mixup", side="device"))

  @pytest.mark.parametrize("seed", [0.5, "1"])
  def test_mapped_refuses_a_seed_that_is_none(self, seed):
    with pytest.raises(ValueError, match="`seed` must be an int or None"):
      augmentation.mapped(augmentation.get("rand"), seed=seed)

  def test_images_that_are_none_are_refused_when_a_dataset_is_made(self):
    wrong = tfecho.Pipeline(
      tf.data.Dataset.range(8),
      augment=augmentation.get("rand"),
      batch_size=2,
    )
    with pytest.raises(ValueError, match="`images` must be uint8 or .* int64"):
      wrong.dataset()


class TestAdvice:
  """`advise` counts an augmentation where it runs."""

  def advised(self, augment, train_step):
    return tfecho.advise(
      pipeline(augment), train_step=train_step, seconds=0.05
    )

  def test_on_the_host_it_is_a_stage_of_the_pipeline(self):
    advice = self.advised(augmentation.get("crop_flip"), lambda *batch: None)
    assert "augment" in advice.measured.stages
    assert set(advice.ratios) == {"decode", "augment", "batch"}

  @needs_tensorflow
  def test_on_the_device_it_is_a_part_of_the_step(self):
    augment = augmentation.get("crop_flip", side="device")
    calls = []

    def train_step(images, numbers):
      calls.append(augment(images, numbers, seed=(1, len(calls))))

    advice = self.advised(None, train_step)
    assert calls
    assert "augment" not in advice.measured.stages
    assert set(advice.ratios) == {"decode", "batch"}
