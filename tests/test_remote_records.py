"""TFRecord files over HTTP give the records that TensorFlow reads locally."""

import pathlib
import sys

import pytest
import tensorflow as tf
from decoding import write_records
from iterators import resume, save, with_options
from stores import HttpStore, texts

import tfecho

# What the files hold: of several sizes, and one that holds nothing.
FILES = [[1, 2, 3], [], [10, 20, 30, 40, 50], [7]]


@pytest.fixture
def paths(tmp_path):
  return write_records(tmp_path, FILES)


@pytest.fixture
def store(paths):
  contents = {
    pathlib.Path(path).name: pathlib.Path(path).read_bytes() for path in paths
  }
  with HttpStore(contents) as store:
    yield store


@pytest.fixture
def urls(store):
  return [store.url(name) for name in store.objects]


def read():
  return tfecho.remote.reader(attempts=3, wait_seconds=1e-3)


@pytest.mark.parametrize("cycle_length", [1, 2, 5])
def test_records_come_in_the_order_of_tensorflows_own_reader(
  store, paths, urls, cycle_length
):
  local = tfecho.remote.records(paths, cycle_length=cycle_length)
  theirs = tf.data.Dataset.from_tensor_slices(paths).interleave(
    tf.data.TFRecordDataset, cycle_length=cycle_length
  )
  remote = tfecho.remote.records(urls, cycle_length=cycle_length)
  assert texts(remote) == texts(local) == texts(theirs)
  assert set(store.requests.values()) == {1}


def test_no_more_files_are_open_than_there_are(paths):
  wanted = texts(tfecho.remote.records(paths, cycle_length=len(paths)))
  assert texts(tfecho.remote.records(paths, cycle_length=2**40)) == wanted


def test_an_epoch_fetches_each_file_once(store, urls):
  data = tfecho.remote.records(urls).repeat(3)
  assert len(texts(data)) == 27
  assert store.requests == dict.fromkeys(store.objects, 3)


def test_no_file_at_all_is_an_empty_dataset():
  assert texts(tfecho.remote.records([])) == []


def test_local_files_and_remote_ones_mix(paths, urls):
  data = tfecho.remote.records([paths[0], urls[2]], cycle_length=1)
  numbers = [int(record) for record in texts(data)]
  assert numbers == FILES[0] + FILES[2]


@pytest.mark.parametrize("compression_type", ["GZIP", "ZLIB"])
@pytest.mark.parametrize("record", [b"", b"zeros\0\0", b"\xff" * 10**5])
def test_compressed_files_are_read(store, tmp_path, compression_type, record):
  path = str(tmp_path / "compressed")
  with tf.io.TFRecordWriter(path, compression_type) as writer:
    writer.write(record)
    writer.write(b"end")
  store.objects["compressed"] = pathlib.Path(path).read_bytes()
  for name in (path, store.url("compressed")):
    data = tfecho.remote.records([name], compression_type=compression_type)
    assert texts(data) == [record, b"end"]


def test_every_position_can_be_saved(urls, tmp_path):
  def make():
    return with_options(tfecho.remote.records(urls, read=read()))

  expected = texts(make())
  iterator = iter(make())
  for step in range(len(expected) + 1):
    checkpoint = save(iterator, tmp_path / str(step))
    assert texts(resume(make(), checkpoint)) == expected[step:]
    next(iterator, None)


def test_a_position_does_not_hold_the_file(store, tmp_path):
  path = str(tmp_path / "large")
  with tf.io.TFRecordWriter(path) as writer:
    for _ in range(10):
      writer.write(b"x" * 10**5)
  store.objects["large"] = pathlib.Path(path).read_bytes()
  iterator = iter(with_options(tfecho.remote.records([store.url("large")])))
  next(iterator)
  save(iterator, tmp_path / "saved" / "position")
  size = sum(file.stat().st_size for file in (tmp_path / "saved").iterdir())
  assert size < 5 * 10**5


@pytest.mark.parametrize("length", [1, 11, 12, 13, 20, 33])
def test_a_file_that_is_cut_off_is_an_error_with_its_name(
  store, urls, length
):
  store.objects["2.tfrecord"] = store.objects["2.tfrecord"][:length]
  with pytest.raises(tf.errors.OpError, match=f"{urls[2]} is cut off"):
    texts(tfecho.remote.records([urls[2]]))


@pytest.mark.parametrize("position", [0, 8, 12, 14])
def test_a_corrupt_file_is_an_error_with_its_name(store, urls, position):
  contents = bytearray(store.objects["2.tfrecord"])
  contents[position] ^= 1
  store.objects["2.tfrecord"] = bytes(contents)
  with pytest.raises(tf.errors.OpError, match=f"{urls[2]} is corrupt"):
    texts(tfecho.remote.records([urls[2]]))


def test_something_else_than_compressed_is_an_error_with_its_name(urls):
  data = tfecho.remote.records([urls[0]], compression_type="GZIP")
  with pytest.raises(tf.errors.OpError, match=f"{urls[0]} can't be decompress"):
    texts(data)


def test_a_file_that_is_missing_loses_no_other(store, urls):
  del store.objects["2.tfrecord"]
  data = tfecho.remote.records(urls, read=read(), cycle_length=1)
  data = data.ignore_errors()
  assert [int(record) for record in texts(data)] == FILES[0] + FILES[3]


@pytest.mark.parametrize(
  ("argument", "value"),
  [
    ("names", "s3://bucket/name"),
    ("names", 3),
    ("names", [b"name"]),
    ("read", None),
    ("compression_type", "gzip"),
    ("cycle_length", 0),
  ],
)
def test_bad_arguments_are_refused(argument, value):
  with pytest.raises(ValueError, match=f"`{argument}`"):
    tfecho.remote.records(**{"names": ["name"], argument: value})


def test_without_the_extra_the_error_comes_at_once(monkeypatch, paths):
  monkeypatch.setitem(sys.modules, "google_crc32c", None)
  with pytest.raises(ImportError, match=r"pip install tfecho\[remote\]"):
    tfecho.remote.records(["s3://bucket/name"])
  assert len(texts(tfecho.remote.records(paths))) == 9
