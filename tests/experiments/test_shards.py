"""Data that TensorFlow Datasets has prepared, read over HTTP as from disk."""

import importlib.util

import keras
import numpy as np
import pytest
import tensorflow as tf
from datasets import needs_tensorflow_datasets
from iterators import resume, save
from prepared_data import SHARDS, prepare
from stores import HttpStore, put

from experiments import arms, feeding, workloads
from experiments.data import prepared
from experiments.store import process, server
from tfecho.training import train

pytestmark = needs_tensorflow_datasets

needs_moto = pytest.mark.skipif(
  importlib.util.find_spec("moto") is None,
  reason="needs moto, for Python 3.10 and later",
)

EXAMPLES = 100  # So that two turns of 16 records make a shard.
FEATURES = ["image", "label"]
BATCH = 10
EPOCH = 40  # steps; 4 passes without an echo
FACTOR = 4


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
  """A directory with a CIFAR-10 of 100 images."""
  directory = tmp_path_factory.mktemp("prepared")
  rng = np.random.RandomState(0)
  examples = [
    {
      "id": str(n),
      "image": rng.randint(0, 256, (32, 32, 3)).astype(np.uint8),
      "label": n % 10,
    }
    for n in range(EXAMPLES)
  ]
  prepare("cifar10", directory, train=examples, test=examples[:20])
  return directory


def _contents(directory):
  """All files below a directory, by their names there."""
  return {
    path.relative_to(directory).as_posix(): path.read_bytes()
    for path in sorted(directory.rglob("*"))
    if path.is_file()
  }


@pytest.fixture(scope="module")
def s3(data_dir):
  store = process.start()
  for name, contents in _contents(data_dir).items():
    put(f"{store.endpoint}/{server.BUCKET}/tfds/{name}", contents)
  yield store
  store.close()


@pytest.fixture
def in_s3(s3, monkeypatch):
  """Lets experiments find the data there, as a person would."""
  monkeypatch.setenv("AWS_ENDPOINT_URL", s3.endpoint)
  monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
  monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
  monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
  monkeypatch.setenv(prepared.VARIABLE, f"s3://{server.BUCKET}/tfds/")
  return s3


@pytest.fixture
def on_server(data_dir, monkeypatch, tmp_path):
  """A plain web server with the data."""
  folder = tmp_path.name  # No two tests have the same, if they have a port.
  contents = _contents(data_dir)
  with HttpStore({f"{folder}/{n}": contents[n] for n in contents}) as store:
    monkeypatch.setenv(prepared.VARIABLE, store.url(folder))
    yield store


def _load(split="train"):
  return prepared.load("cifar10", split, FEATURES, encoded=["image"])


def _labelled(dataset):
  return [(r["image"].numpy(), int(r["label"])) for r in dataset]


def _on_disk(data_dir, monkeypatch, split="train"):
  with monkeypatch.context() as patch:
    patch.setenv(prepared.VARIABLE, str(data_dir))
    records = _load(split)
    return records.element_spec, _labelled(records)


@needs_moto
@pytest.mark.parametrize("split", ["train", "train[20:81]", "test"])
def test_records_come_from_s3_as_from_disk_in_the_same_order(
  in_s3, data_dir, monkeypatch, split
):
  element_spec, expected = _on_disk(data_dir, monkeypatch, split)
  records = _load(split)
  assert records.element_spec == element_spec
  assert len(records) == len(expected)
  assert _labelled(records) == _labelled(records) == expected


def test_a_plain_web_server_will_do(on_server, data_dir, monkeypatch):
  assert _labelled(_load()) == _on_disk(data_dir, monkeypatch)[1]
  # Every shard by one request, and one for what describes them.
  assert set(on_server.requests.values()) == {1}
  assert len(on_server.requests) == SHARDS + 1


def test_reading_can_be_taken_up_where_it_was(on_server, tmp_path):
  expected = _labelled(_load())
  for count in (20, 99):
    iterator = iter(_load())
    for _ in range(count):
      next(iterator)
    checkpoint = save(iterator, tmp_path / str(count))
    assert _labelled(resume(_load(), checkpoint)) == expected[count:]


# --- Trained on ---------------------------------------------------------------


def _batches(arm):
  workload = workloads.get("resnet32_cifar10", "paper")
  assert workload.train_examples == EXAMPLES
  pipeline = feeding.plain_pipeline(
    workload, batch_size=BATCH, shuffle_buffer=EXAMPLES, seed=1
  )
  echo = feeding.echo(arm, batch_size=BATCH, echo_buffer=2 * BATCH)
  return pipeline.dataset(repeat=True, implementation="graph", **echo)


each_arm = pytest.mark.parametrize(
  "arm",
  [
    arms.parse(kind, FACTOR)
    for kind in ("baseline", "after_read", "after_decode")
  ],
  ids=str,
)


@needs_moto
def test_a_training_is_fed_the_same_from_s3_as_from_disk(
  in_s3, data_dir, monkeypatch
):
  arm = arms.parse("after_decode", FACTOR)
  stored = _batches(arm)
  monkeypatch.setenv(prepared.VARIABLE, str(data_dir))
  for one, other in zip(stored.take(25), _batches(arm)):
    for tensor, same in zip(one, other):
      assert (tensor == same).numpy().all()


@needs_moto
@each_arm
def test_an_echo_asks_for_so_many_fewer_shards(in_s3, arm):
  asked = []

  def count(epoch, logs):
    asked.append(in_s3.counts()["requests"])

  train(
    lambda: keras.Sequential(
      [keras.Input([32, 32, 3]), keras.layers.Flatten(), keras.layers.Dense(10)]
    ),
    _batches(arm),
    length=f"{3 * EPOCH}ba",
    epoch=f"{EPOCH}ba",
    optimizer=keras.optimizers.SGD,
    learning_rate=0.001,
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    callbacks=[keras.callbacks.LambdaCallback(on_epoch_end=count)],
    verbose=0,
    jit_compile=False,
  )
  # Without the first epoch, before which the data are looked at, and buffers
  # filled. What was read ahead at its end may differ from that at the last.
  passes = 2 * EPOCH * BATCH / EXAMPLES / arm.factor
  assert abs(asked[-1] - asked[0] - SHARDS * passes) <= 2 * SHARDS


# --- What goes wrong ----------------------------------------------------------


def test_a_shard_that_is_cut_off_or_missing_is_named(on_server):
  name = next(n for n in on_server.objects if "train" in n and "00001" in n)
  on_server.objects[name] = on_server.objects[name][:-1]
  with pytest.raises(tf.errors.OpError, match=f"{name} is cut off"):
    list(_load())
  del on_server.objects[name]
  with pytest.raises(tf.errors.OpError, match=f"cannot read .*{name}: FileNot"):
    list(_load())


def test_what_may_pass_is_tried_again(on_server, data_dir, monkeypatch):
  name = next(n for n in on_server.objects if "train" in n)
  on_server.faults[name] = [503, "cut"]
  assert _labelled(_load()) == _on_disk(data_dir, monkeypatch)[1]
  assert on_server.requests[name] == 3


def test_data_that_are_not_there_are_named_with_what_makes_them(on_server):
  url = prepared.directory()
  message = (
    f"^lm1b is not in {url}: cannot read {url}/lm1b/1.1.0/dataset_info.json: "
    ".*`tfds build lm1b --data_dir=FOLDER`, and copy"
  )
  with pytest.raises(ValueError, match=message):
    prepared.load("lm1b", "train", ["text"])


def test_files_of_another_format_are_refused(on_server):
  name = next(n for n in on_server.objects if n.endswith("dataset_info.json"))
  on_server.objects[name] = on_server.objects[name].replace(
    b'"fileFormat": "tfrecord"', b'"fileFormat": "riegeli"'
  )
  with pytest.raises(ValueError, match="has riegeli: .*--file_format=tfrecord"):
    _load()


def test_what_is_made_of_data_elsewhere_is_kept_here(monkeypatch, tmp_path):
  monkeypatch.setenv(prepared.VARIABLE, "gs://bucket/tfds")
  monkeypatch.setenv("TFECHO_CACHE_DIR", str(tmp_path))
  folder = prepared.beside("vocabularies")
  assert folder == tmp_path / "vocabularies" / "gs%3A%2F%2Fbucket%2Ftfds"
