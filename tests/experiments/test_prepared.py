import os
import sys

import numpy as np
import pytest
import tensorflow as tf
from absl import flags
from absl.testing import flagsaver
from datasets import needs_tensorflow_datasets
from prepared_data import SHARDS, prepare

from experiments import workload_flags
from experiments.data import prepared

pytestmark = needs_tensorflow_datasets

FEATURES = ["image", "label"]
COUNT = 40


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
  """A directory with an ImageNet of 40 examples."""
  directory = tmp_path_factory.mktemp("prepared")
  rng = np.random.RandomState(0)
  examples = [
    {
      "file_name": f"{label}.JPEG",
      "image": rng.randint(0, 256, (20 + label, 30, 3)).astype(np.uint8),
      "label": label,
    }
    for label in range(COUNT)
  ]
  prepare("imagenet2012", directory, train=examples, validation=examples[:5])
  return directory


@pytest.fixture
def records(data_dir, monkeypatch):
  monkeypatch.setenv(prepared.VARIABLE, str(data_dir))
  return prepared.load("imagenet2012", "train", FEATURES, encoded=["image"])


def _labels(dataset):
  return [int(record["label"]) for record in dataset]


def test_a_pass_has_every_record_once_in_the_same_order(records, data_dir):
  assert len(list(data_dir.glob("imagenet2012/*/*train*"))) == SHARDS
  assert len(records) == COUNT
  assert sorted(_labels(records)) == list(range(COUNT))
  assert _labels(records) == _labels(records)


def test_what_is_to_stay_encoded_does(records):
  for record in records.take(3):
    assert set(record) == set(FEATURES)
    shape = tf.io.extract_jpeg_shape(record["image"])
    assert shape.numpy().tolist() == [20 + int(record["label"]), 30, 3]


def test_the_rest_is_decoded(records, data_dir):
  decoded = prepared.load("imagenet2012", "train", ["image"])
  assert decoded.element_spec["image"].dtype == tf.uint8
  assert decoded.element_spec["image"].shape.as_list() == [None, None, 3]


def test_a_part_of_a_split_is_one(data_dir, monkeypatch):
  monkeypatch.setenv(prepared.VARIABLE, str(data_dir))
  part = prepared.load("imagenet2012", "validation[1:3]", ["label"])
  assert len(part) == len(_labels(part)) == 2


def test_reading_can_be_taken_up_where_it_was(records, tmp_path):
  def restore_after(count):
    iterator = iter(records)
    checkpoint = tf.train.Checkpoint(iterator=iterator)
    for _ in range(count):
      next(iterator)
    path = checkpoint.write(str(tmp_path / "position"))
    other = iter(records)
    tf.train.Checkpoint(iterator=other).read(path)
    return _labels(other)

  assert restore_after(23) == _labels(records)[23:]


@pytest.mark.parametrize(
  "name, command",
  [
    ("cifar10", "`tfds build cifar10 --data_dir={}`$"),
    (
      "imagenet2012",
      "`tfds build imagenet2012 --data_dir={0}`. Put into"
      " {0}/downloads/manual before .* ILSVRC2012_img_train.tar",
    ),
    ("coco/2017", "`tfds build coco/2017 --data_dir={}`$"),
  ],
)
def test_where_there_are_no_data_the_error_says_how_to_prepare_them(
  name, command, monkeypatch, tmp_path
):
  monkeypatch.setenv(prepared.VARIABLE, str(tmp_path))
  message = f"^{name} is not on this machine: .* {tmp_path}/{name}/.*"
  with pytest.raises(ValueError, match=message + command.format(tmp_path)):
    prepared.load(name, "train", ["image"])
  assert not list(tmp_path.iterdir())


def test_without_tensorflow_datasets_the_error_says_how_to_install_them(
  monkeypatch,
):
  monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
  with pytest.raises(ValueError, match="`pip install tensorflow-datasets`"):
    prepared.load("cifar10", "train", ["image"])


def test_data_are_looked_for_where_tensorflow_datasets_would(monkeypatch):
  import tensorflow_datasets as tfds

  monkeypatch.delenv(prepared.VARIABLE, raising=False)
  theirs = os.path.expanduser(tfds.core.constants.DATA_DIR)
  assert prepared.directory() == theirs


def test_the_flag_holds_for_processes_that_are_started_too(
  monkeypatch, tmp_path
):
  monkeypatch.setenv(prepared.VARIABLE, "elsewhere")
  flags.FLAGS.mark_as_parsed()
  with flagsaver.flagsaver(data_dir=str(tmp_path)):
    workload_flags.use_data_dir()
  assert prepared.directory() == os.environ[prepared.VARIABLE] == str(tmp_path)


def test_without_the_flag_the_variable_holds(monkeypatch):
  monkeypatch.setenv(prepared.VARIABLE, "elsewhere")
  flags.FLAGS.mark_as_parsed()
  workload_flags.use_data_dir()
  assert prepared.directory() == "elsewhere"
