"""mixup and cutmix on the host: a stage of `Pipeline` behind its batches."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from backends import needs_tensorflow
from iterators import with_options

import tfecho
from tfecho import stages
from tfecho.training import augmentation, train

MIXES = pytest.mark.parametrize("name", ["mixup", "cutmix"])
CLASSES, BATCH_SIZE, FACTOR = 6, 4, 2
# Batches before a save, in the middle of a pair, and behind it.
BEFORE, BEHIND = 3, 5


def decode(number):
  """An image that is as bright as its class says, in one-hot."""
  pixels = tf.fill([8, 8, 3], tf.cast(40 * number, tf.uint8))
  return pixels, tf.one_hot(number, CLASSES)


def pipeline(mix, **options):
  return tfecho.Pipeline(
    tf.data.Dataset.range(CLASSES),
    decode=decode,
    mix=mix,
    **{"batch_size": BATCH_SIZE, "seed": 1, **options},
  )


def echoed(name, place, implementation):
  mix = augmentation.get(name, alpha=1.0)
  data = pipeline(mix).dataset(
    echo_after=place,
    factor=FACTOR,
    repeat=True,
    implementation=implementation,
  )
  return with_options(data)


def drawn(iterator, count):
  """The images of some batches, and their labels."""
  return [
    tuple(part.numpy() for part in batch)
    for batch in itertools.islice(iterator, count)
  ]


def assert_same(one, other):
  for batch, other_batch in zip(one, other):
    for part, other_part in zip(batch, other_batch):
      np.testing.assert_array_equal(part, other_part)
  assert len(one) == len(other)


@MIXES
def test_repeated_batches_are_mixed_anew(name, implementation):
  (first, labels), (again, other_labels) = drawn(
    iter(echoed(name, "batch", implementation)), 2
  )
  assert np.any(first != again) and np.any(labels != other_labels)
  # Of the same four examples, each of which is in there once.
  np.testing.assert_allclose(labels.sum(axis=0), [1, 1, 1, 1, 0, 0], atol=1)
  assert not np.any(labels[:, 4:]) and not np.any(other_labels[:, 4:])


@MIXES
@pytest.mark.parametrize("place", ["decode", "batch"])
def test_mixing_goes_on_after_a_restore(name, place, implementation, tmp_path):
  uninterrupted = drawn(
    iter(echoed(name, place, implementation)), BEFORE + BEHIND
  )
  iterator = iter(echoed(name, place, implementation))
  assert_same(drawn(iterator, BEFORE), uninterrupted[:BEFORE])
  path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "it"))
  again = iter(echoed(name, place, implementation))
  tf.train.Checkpoint(iterator=again).read(path).assert_consumed()
  assert_same(drawn(again, BEHIND), uninterrupted[BEFORE:])


def test_epochs_and_runs_without_a_seed_are_mixed_differently():
  def found(seed):
    data = pipeline(augmentation.get("mixup", alpha=1.0), seed=seed).dataset()
    return np.concatenate([labels for _, labels in [*data, *data]])

  epoch, other_epoch = np.split(found(seed=1), 2)
  assert np.any(epoch != other_epoch)
  assert np.any(found(seed=None) != found(seed=None))


def test_an_incomplete_batch_is_mixed_in_itself():
  *_, (_, labels) = pipeline(augmentation.get("mixup", alpha=1.0)).dataset()
  assert labels.shape == (2, CLASSES)
  assert not np.any(labels[:, :BATCH_SIZE])


def test_any_function_of_batches_will_do():
  doubled = pipeline(lambda images, labels: (images, 2 * labels)).dataset()
  labels = np.concatenate([labels for _, labels in doubled])
  np.testing.assert_array_equal(labels, 2 * np.eye(CLASSES))


def test_images_are_augmented_before_they_are_mixed():
  both = pipeline(
    augmentation.get("mixup"), augment=augmentation.get("trivial")
  )
  assert str(both).splitlines()[-3:] == [
    "augment  trivial, with seeds",
    "batch    4",
    "mix      mixup, with seeds",
  ]
  for images, labels in both.dataset():
    assert images.dtype == tf.uint8
    np.testing.assert_allclose(tf.reduce_sum(labels, axis=1), 1, rtol=1e-5)


class TestRefusals:
  @MIXES
  def test_of_what_needs_batches_as_augment(self, name):
    message = f"`augment` is {name}, which is for batches: give it as `mix`"
    with pytest.raises(ValueError, match=message):
      pipeline(None, augment=augmentation.get(name))

  def test_of_what_takes_single_images_as_mix(self):
    message = "`mix` is rand, which is for images: give it as `augment`"
    with pytest.raises(ValueError, match=message):
      pipeline(augmentation.get("rand"))

  @needs_tensorflow
  def test_of_what_is_for_the_device(self):
    mix = augmentation.get("mixup", side="device")
    with pytest.raises(ValueError, match="`mix` is mixup for the device: "):
      pipeline(mix)

  def test_of_what_is_no_function(self):
    with pytest.raises(ValueError, match="`mix` must be .* got 'mixup'"):
      pipeline("mixup")

  def test_of_labels_that_are_not_one_hot(self):
    numbers = tfecho.Pipeline(
      tf.data.Dataset.range(CLASSES),
      decode=lambda n: (decode(n)[0], n),
      mix=augmentation.get("mixup"),
      batch_size=BATCH_SIZE,
    )
    with pytest.raises(ValueError, match="`labels` must be one-hot"):
      numbers.dataset()


class TestTraining:
  def trained(self, loss, **options):
    return train(
      build_model,
      pipeline(augmentation.get("mixup"), **options),
      echo={
        "echo_after": "batch", "factor": FACTOR, "implementation": "graph"
      },
      length="2ep",
      optimizer="sgd",
      learning_rate=0.01,
      loss=loss,
      seed=1,
      verbose=0,
      jit_compile=False,
    )

  def test_mixes_and_counts_fresh_examples(self):
    loss = keras.losses.CategoricalCrossentropy(from_logits=True)
    result = self.trained(loss, batch_size=3)
    assert (result.steps, result.fresh_examples) == (8, 2 * CLASSES)
    assert np.isfinite(result.curve[-1]["loss"])

  @pytest.mark.parametrize(
    "loss",
    [
      "sparse_categorical_crossentropy",
      keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    ],
  )
  def test_refuses_a_loss_that_wants_the_numbers_of_classes(self, loss):
    with pytest.raises(ValueError, match="or the loss the CategoricalCross"):
      self.trained(loss)


def build_model():
  return keras.Sequential([
    keras.Input((8, 8, 3)),
    keras.layers.Rescaling(1 / 255),
    keras.layers.Flatten(),
    keras.layers.Dense(CLASSES),
  ])


class TestAdvice:
  """`advise` counts what is mixed on the host as a part of the input."""

  def test_as_a_stage_behind_every_echo(self):
    trained_on = []
    advice = tfecho.advise(
      pipeline(augmentation.get("mixup", alpha=1.0)),
      train_step=lambda images, labels: trained_on.append(labels.numpy()),
      seconds=0.05,
    )
    assert list(advice.measured.stages) == ["source", "decode", "batch", "mix"]
    assert list(advice.ratios) == ["decode", "batch"]
    assert " mix " in str(advice)
    # All but a few, of which no image got anything from another.
    mixed = [np.any((labels > 0) & (labels < 1)) for labels in trained_on]
    assert np.mean(mixed) > 0.8


def test_an_echo_on_stall_knows_what_is_mixed_ahead(monkeypatch):
  """Until what stands behind it is full, requests say nothing about stalls."""
  made = []

  def echo_on_stall(max_factor, **options):
    made.append(options["warmup"])
    return stages.unchanged

  monkeypatch.setattr(stages, "echo_on_stall", echo_on_stall)
  monkeypatch.setattr(stages, "cores", lambda: 2)
  for mix in (None, augmentation.get("mixup")):
    pipeline(mix).dataset(echo_after="decode", max_factor=8)
  threads = 3  # Its own: one more than there are cores.
  assert made[1] - made[0] == 2 * threads * BATCH_SIZE
