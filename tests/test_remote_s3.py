"""Objects of an S3 store, moto's server on the loopback, over real HTTP."""

import pathlib

import pytest
import tensorflow as tf
from decoding import write_records
from iterators import resume, save, values
from stores import READ_ERRORS, HttpStore, put, texts

import tfecho

moto_server = pytest.importorskip(
  "moto.server", reason="needs moto, for Python 3.10 and later"
)

NUMBERS = range(20)
NAMES = [f"s3://bucket/train/{number}.txt" for number in NUMBERS]


@pytest.fixture(scope="module")
def address():
  """Of a store with a bucket that holds a file for each number."""
  server = moto_server.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
  server.start()
  host, port = server.get_host_and_port()
  url = f"http://{host}:{port}"
  put(f"{url}/bucket")
  for number in NUMBERS:
    put(f"{url}/bucket/train/{number}.txt", str(number).encode())
  yield url
  server.stop()


@pytest.fixture(autouse=True)
def credentials(monkeypatch):
  """Where botocore looks for them, whatever else this machine has."""
  monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
  monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
  monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
  monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
  monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
  monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
  monkeypatch.delenv("AWS_PROFILE", raising=False)
  monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)


@pytest.fixture
def bucket(address, monkeypatch):
  monkeypatch.setenv("AWS_ENDPOINT_URL", address)
  return f"{address}/bucket"


def reader(**limits):
  return tfecho.remote.reader(
    **{"attempts": 3, "wait_seconds": 1e-3, **limits}
  )


def test_objects_are_read_in_parallel_and_in_order(bucket):
  data = tf.data.Dataset.from_tensor_slices(NAMES)
  data = data.map(reader(), num_parallel_calls=8)
  assert texts(data) == [str(number).encode() for number in NUMBERS]


def test_records_are_read(bucket, tmp_path):
  for path in write_records(tmp_path, [[1, 2, 3], [4, 5]]):
    name = pathlib.Path(path).name
    put(f"{bucket}/{name}", pathlib.Path(path).read_bytes())
  names = ["s3://bucket/0.tfrecord", "s3://bucket/1.tfrecord"]
  data = tfecho.remote.records(names, read=reader(), cycle_length=1)
  assert [int(record) for record in texts(data)] == [1, 2, 3, 4, 5]


def test_a_pipeline_can_be_saved_at_every_step(
  bucket, tmp_path, implementation
):
  def make():
    pipeline = tfecho.Pipeline(
      NAMES, read=reader(), batch_size=4, shuffle_buffer=10, seed=1
    )
    return pipeline.dataset(
      echo_after="read",
      factor=2,
      echo_buffer=8,
      implementation=implementation,
    )

  expected = values(make())
  assert sorted(int(name) for batch in expected for name in batch) == sorted(
    [*NUMBERS] * 2
  )
  iterator = iter(make())
  for step in range(len(expected) + 1):
    checkpoint = save(iterator, tmp_path / str(step))
    assert values(resume(make(), checkpoint)) == expected[step:]
    next(iterator, None)


@pytest.mark.parametrize("name", ["s3://bucket/none", "s3://no-bucket/1.txt"])
def test_an_object_that_is_missing_is_an_error_with_its_name(bucket, name):
  with pytest.raises(READ_ERRORS, match=f"read {name}: FileNotFound"):
    reader()(name)


def test_missing_credentials_are_an_error_at_once(bucket, monkeypatch):
  monkeypatch.delenv("AWS_ACCESS_KEY_ID")
  monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
  with pytest.raises(READ_ERRORS, match=f"{NAMES[0]}: NoCredentials"):
    reader()(NAMES[0])


def test_storage_options_reach_the_store(bucket):
  read = reader(storage_options={"anon": True})
  with pytest.raises(READ_ERRORS, match=f"{NAMES[3]}: PermissionError"):
    read(NAMES[3])


# What answers here is no S3 but speaks as much of it as a reader asks for.


@pytest.fixture
def faulty(monkeypatch):
  with HttpStore({"bucket/name": b"contents" * 1000}) as store:
    monkeypatch.setenv("AWS_ENDPOINT_URL", store.url("").rstrip("/"))
    yield store


@pytest.mark.parametrize("fault", [500, 503, "cut", "reset"])
def test_what_may_pass_is_tried_again_as_often_as_said(faulty, fault):
  faulty.faults["bucket/name"] = [fault] * 2
  assert reader()("s3://bucket/name").numpy() == b"contents" * 1000
  assert faulty.requests == {"bucket/name": 3}


@pytest.mark.parametrize("fault", [500, 503, "cut", "reset"])
def test_what_does_not_pass_is_an_error_with_the_name(faulty, fault):
  faulty.faults["bucket/name"] = [fault] * 99
  with pytest.raises(READ_ERRORS, match="s3://bucket/name, in 3 attempt"):
    reader()("s3://bucket/name")
  # On a connection that was kept, clients ask once more by themselves.
  tolerated = {3, 6} if fault == "reset" else {3}
  assert faulty.requests["bucket/name"] in tolerated


@pytest.mark.parametrize("status", [403, 404])
def test_what_cannot_pass_is_an_error_at_once(faulty, status):
  faulty.faults["bucket/name"] = [status]
  with pytest.raises(READ_ERRORS, match="s3://bucket/name: "):
    reader()("s3://bucket/name")
  assert faulty.requests == {"bucket/name": 1}
