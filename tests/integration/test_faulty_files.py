"""Files that are damaged: what is told of them, and what becomes of the rest.

Errors of a stage are looked at in test_upstream_errors.
"""

import collections
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from decoding import write_records
from transformations import IMPLEMENTATIONS, USES, each_of

import tfecho

SHARE_LEFT = 0.8
FILES = [[0, 1, 2], [10, 11, 12], [20, 21, 22]]
NUMBERS = [0, 1, 2, 10, 11, 20, 21, 22]  # 12 is cut off

# What announces how many elements there are fails at the end where one is bad.
SAFE = {
  name: use
  for name, use in USES.items()
  if name in ("echo", "echo by a fraction", "shuffle_after_echo",
              "echo_on_stall")
}


@pytest.fixture
def cut_records(tmp_path):
  """Numbers from three files, of which the second was cut off."""
  names = write_records(tmp_path, FILES)
  cut = pathlib.Path(names[1])
  cut.write_bytes(cut.read_bytes()[:-3])
  return tf.data.TFRecordDataset(names).map(
    lambda record: tf.strings.to_number(record, tf.int64)
  )


@pytest.fixture
def images(tmp_path):
  """Names of four photographs, of which the third was cut off."""
  names = []
  for i in range(4):
    pixels = np.full([16, 16, 3], 50 * i, np.uint8)
    contents = tf.io.encode_jpeg(pixels).numpy()
    names.append(str(tmp_path / f"{i}.jpg"))
    share = SHARE_LEFT if i == 2 else 1
    pathlib.Path(names[-1]).write_bytes(contents[: int(share * len(contents))])
  return names


def told_and_emitted(dataset):
  """What the errors say, and how often each element comes."""
  iterator, errors, emitted = iter(dataset), [], collections.Counter()
  while True:
    try:
      emitted[int(next(iterator))] += 1
    except StopIteration:
      return errors, emitted
    except tf.errors.OpError as error:
      errors.append(str(error))


@each_of(SAFE, ["native"])
def test_a_cut_file_of_records_is_told_once_and_costs_its_rest_only(
  use, implementation, cut_records
):
  errors, emitted = told_and_emitted(use.apply(cut_records, implementation))
  assert len(errors) == 1
  assert "truncated record at" in errors[0]  # with the position in the file
  assert emitted == collections.Counter(use.emits(NUMBERS))


@each_of(SAFE)
def test_a_cut_file_of_records_may_be_ignored(
  use, implementation, cut_records
):
  dataset = use.apply(cut_records.ignore_errors(), implementation)
  errors, emitted = told_and_emitted(dataset)
  assert errors == []
  assert emitted == collections.Counter(use.emits(NUMBERS))


def pipeline(names, **options):
  """Batches of one: the value that all pixels of an image have, about."""

  def decode(contents, name):
    image = tfecho.images.decode_and_center_crop(contents, 8, file=name)
    value = tf.reduce_mean(tf.cast(image, tf.float32)) / 50
    return tf.cast(tf.round(value), tf.int64)

  source = tf.data.Dataset.from_tensor_slices(names)
  return tfecho.Pipeline(
    source,
    read=lambda name: (tf.io.read_file(name), name),
    decode=decode,
    batch_size=1,
  ).dataset(**options)


@pytest.mark.parametrize("echo_after", ["decode", "augment", "batch"])
def test_a_cut_image_is_told_by_its_name_and_costs_nothing_else(
  native_ops, images, echo_after
):
  data = pipeline(images, echo_after=echo_after, factor=2).unbatch()
  errors, emitted = told_and_emitted(data)
  assert len(errors) == 1
  assert images[2] in errors[0]
  assert emitted == {0: 2, 1: 2, 3: 2}


def test_behind_an_echo_after_read_each_copy_of_a_cut_image_is_told(
  native_ops, images
):
  data = pipeline(images, echo_after="read", factor=2).unbatch()
  errors, emitted = told_and_emitted(data)
  assert len(errors) == 2
  assert emitted == {0: 2, 1: 2, 3: 2}


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS, indirect=True)
def test_what_storage_refuses_now_and_then_may_be_asked_for_again(
  implementation
):
  """A stage that tries again needs nothing from the echo behind it."""
  tries = collections.Counter()

  def read(i):
    for _ in range(3):
      tries[int(i)] += 1
      if tries[int(i)] > i % 3:
        return i
    raise AssertionError("asked in vain")

  data = tf.data.Dataset.range(9).map(
    lambda i: tf.numpy_function(read, [i], tf.int64, stateful=False)
  )
  data = data.apply(tfecho.echo(2, implementation=implementation))
  errors, emitted = told_and_emitted(data)
  assert errors == []
  assert emitted == dict.fromkeys(range(9), 2)
  assert tries == {i: i % 3 + 1 for i in range(9)}
