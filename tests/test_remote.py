"""Files over HTTP: read in parallel, again where it helps, and resumed."""

import os
import socket
import subprocess
import sys

import pytest
import tensorflow as tf
from iterators import resume, save, values, with_options
from stores import PATIENCE, READ_ERRORS, HttpStore, texts

import tfecho
from tfecho.remote import fetching

# Twenty names, of which the contents are the numbers.
NUMBERS = {f"{number}.txt": str(number).encode() for number in range(20)}


@pytest.fixture
def store():
  with HttpStore(NUMBERS) as store:
    yield store


@pytest.fixture
def urls(store):
  return [store.url(name) for name in NUMBERS]


def impatient(**limits):
  """A reader that tries four times, with next to no time in between."""
  return tfecho.remote.reader(
    **{"attempts": 4, "wait_seconds": 1e-3, **limits}
  )


def number(record):
  return tf.strings.to_number(record, tf.int64)


# --- What is read -----------------------------------------------------------


@pytest.mark.parametrize("contents", [b"", b"\0", b"end\0\0", b"\xff" * 10**6])
def test_contents_arrive_as_they_are(store, contents):
  store.objects["name"] = contents
  assert tfecho.remote.read_file(store.url("name")).numpy() == contents


def test_spaces_and_accents_in_names_are_read(store):
  store.objects["l'été 1.txt"] = b"found"
  url = store.url("l'%C3%A9t%C3%A9%201.txt")
  assert tfecho.remote.read_file(url).numpy() == b"found"


def test_local_files_and_remote_ones_mix(store, tmp_path):
  path = tmp_path / "local.txt"
  path.write_bytes(b"local")
  names = [str(path), store.url("3.txt"), f"file://{path}"]
  data = tf.data.Dataset.from_tensor_slices(names)
  data = data.map(tfecho.remote.read_file)
  assert texts(data) == [b"local", b"3", b"local"]
  assert store.requests == {"3.txt": 1}


def test_the_shape_is_known(urls):
  data = tf.data.Dataset.from_tensor_slices(urls)
  data = data.map(tfecho.remote.read_file)
  assert data.element_spec == tf.TensorSpec([], tf.string)


@pytest.mark.parametrize(
  ("name", "remote"),
  [
    ("s3://bucket/name", True),
    ("http://host/name", True),
    ("https://host/name\n", True),
    ("gs://bucket/name", False),
    ("/http://host/name", False),
    ("s3:/bucket", False),
    ("name", False),
  ],
)
def test_what_tensorflow_reads_itself_is_left_to_it(name, remote):
  assert fetching.is_remote(name) == remote
  matched = tf.strings.regex_full_match(name, fetching.REMOTE)
  assert matched.numpy() == remote


# --- Parallel reads ---------------------------------------------------------


def test_as_many_reads_overlap_as_there_are_threads(store, urls):
  store.meet(10)  # No request is answered before the tenth has come.
  options = tf.data.Options()
  options.threading.private_threadpool_size = 10
  data = tf.data.Dataset.from_tensor_slices(urls).with_options(options)
  data = data.map(tfecho.remote.read_file, num_parallel_calls=10)
  assert texts(data) == list(NUMBERS.values())


# --- Faults -----------------------------------------------------------------


@pytest.mark.parametrize("fault", [500, 503, 429, 408, "cut", "reset"])
def test_what_may_pass_is_tried_again_until_it_has(store, fault):
  store.faults["7.txt"] = [fault] * 3
  assert impatient()(store.url("7.txt")).numpy() == b"7"
  assert store.requests == {"7.txt": 4}


@pytest.mark.parametrize("fault", [503, "cut", "reset"])
def test_what_does_not_pass_is_an_error_with_the_name(store, fault):
  store.faults["7.txt"] = [fault] * 99
  url = store.url("7.txt")
  with pytest.raises(READ_ERRORS, match=f"{url}, in 4 attempts"):
    impatient()(url)
  # aiohttp asks once more by itself if it was answered with nothing at all.
  assert store.requests == {"7.txt": 8 if fault == "reset" else 4}


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_what_cannot_pass_is_an_error_at_once(store, status):
  store.faults["7.txt"] = [status]
  url = store.url("7.txt")
  with pytest.raises(READ_ERRORS, match=url):
    impatient()(url)
  assert store.requests == {"7.txt": 1}


def test_a_store_that_does_not_answer_is_asked_again(store):
  store.faults["7.txt"] = ["hang"]
  # On a busy machine an answer may take longer than that, too.
  read = impatient(timeout_seconds=0.5, attempts=40)
  assert read(store.url("7.txt")).numpy() == b"7"
  assert store.requests["7.txt"] >= 2


def test_a_store_that_is_not_there_is_an_error_with_the_name():
  with socket.socket() as nobody_listens:  # and nobody else gets its port
    nobody_listens.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{nobody_listens.getsockname()[1]}/7.txt"
    with pytest.raises(READ_ERRORS, match=f"{url}, in 4 attempts"):
      impatient()(url)


def test_an_error_loses_no_other_file(store, urls):
  store.faults["7.txt"] = [404]
  store.faults["9.txt"] = [503, "cut"]
  data = tf.data.Dataset.from_tensor_slices(urls)
  data = data.map(impatient(), num_parallel_calls=4)
  data = data.ignore_errors()
  expected = [text for name, text in NUMBERS.items() if name != "7.txt"]
  assert texts(data) == expected


def test_waits_stay_finite_however_often_it_was_tried():
  fetcher = fetching.Fetcher(
    attempts=10**6, wait_seconds=1.0, timeout_seconds=60
  )
  assert 15 <= fetcher._pause(10**6) <= 30


def test_waits_double_and_are_not_all_alike(monkeypatch):
  waits = []
  monkeypatch.setattr(fetching.fetches_under_way, "sleep", waits.append)
  fetcher = fetching.Fetcher(attempts=10, wait_seconds=1.0, timeout_seconds=60)
  monkeypatch.setattr(fetcher, "_fetch", _fail)
  with pytest.raises(OSError, match="in 10 attempts"):
    fetcher("http://host/name")
  longest = [1, 2, 4, 8, 16, 30, 30, 30, 30]
  assert len(waits) == len(longest)
  assert all(most / 2 <= w <= most for w, most in zip(waits, longest))
  assert len({w / most for w, most in zip(waits, longest)}) > 1


def _fail(name):
  raise ConnectionResetError(name)


def test_a_program_ends_while_reads_are_under_way(store):
  # Of the four that come together one is answered, two are not, and one is to
  # come again much later.
  store.faults = {"1.txt": ["hang"], "2.txt": ["hang"], "3.txt": [503]}
  store.meet(4)
  code = f"""
import tensorflow as tf
import tfecho
options = tf.data.Options()
options.threading.private_threadpool_size = 4
names = [{store.url("")!r} + f"{{i}}.txt" for i in range(4)]
data = tf.data.Dataset.from_tensor_slices(names).with_options(options)
read = tfecho.remote.reader(wait_seconds=3600)
left_behind = iter(data.map(read, num_parallel_calls=4))
print(next(left_behind).numpy())
"""
  ended = subprocess.run(
    [sys.executable, "-c", code],
    timeout=PATIENCE,
    capture_output=True,
    check=True,
  )
  assert ended.stdout.strip() == b"b'0'"
  assert store.requests == {f"{number}.txt": 1 for number in range(4)}


# --- In a pipeline ----------------------------------------------------------


def pipeline(urls):
  return tfecho.Pipeline(
    urls,
    read=impatient(),
    decode=number,
    batch_size=4,
    shuffle_buffer=10,
    seed=1,
  )


@pytest.mark.parametrize("symbolic", [False, True], ids=["plain", "symbolic"])
@pytest.mark.parametrize("echo_after", ["read", "decode"])
def test_a_pipeline_can_be_saved_at_every_step(
  store, urls, tmp_path, implementation, echo_after, symbolic
):
  def make():
    data = pipeline(urls).dataset(
      echo_after=echo_after,
      factor=2,
      echo_buffer=8,
      implementation=implementation,
    )
    return with_options(data, symbolic=symbolic)

  expected = values(make())
  iterator = iter(make())
  for step in range(len(expected) + 1):
    checkpoint = save(iterator, tmp_path / str(step))
    assert values(resume(make(), checkpoint)) == expected[step:]
    next(iterator, None)


def test_an_echo_behind_the_read_asks_for_each_file_once(
  store, urls, implementation
):
  data = pipeline(urls).dataset(
    echo_after="read", factor=3, implementation=implementation
  )
  seen = sorted(element for batch in values(data) for element in batch)
  assert seen == sorted([*range(20)] * 3)
  assert store.requests == dict.fromkeys(NUMBERS, 1)


# --- What is needed, and what is refused ------------------------------------


@pytest.mark.parametrize(
  ("argument", "value"),
  [
    ("attempts", 0),
    ("attempts", 2.5),
    ("wait_seconds", 0),
    ("timeout_seconds", -1),
    ("timeout_seconds", "1"),
    ("storage_options", ["anon"]),
  ],
)
def test_bad_limits_are_refused(argument, value):
  with pytest.raises(ValueError, match=f"`{argument}`"):
    tfecho.remote.reader(**{argument: value})


def test_without_the_extra_the_error_names_it(monkeypatch, tmp_path):
  monkeypatch.setitem(sys.modules, "aiohttp", None)
  read = tfecho.remote.reader()
  with pytest.raises(ImportError, match=r"pip install tfecho\[remote\]"):
    read("http://127.0.0.1:9/name")
  path = tmp_path / "local.txt"
  path.write_bytes(b"local")
  assert read(str(path)).numpy() == b"local"


def test_importing_and_reading_locally_do_not_import_fsspec(tmp_path):
  path = tmp_path / "local.txt"
  path.write_bytes(b"local")
  code = f"""
import sys
import tensorflow
before = set(sys.modules)  # Some releases of it find fsspec by themselves.
import tfecho
assert tfecho.remote.read_file({str(path)!r}).numpy() == b"local"
loaded = {{"fsspec", "s3fs", "aiohttp", "google_crc32c"}} & set(sys.modules)
loaded -= before
assert not loaded, loaded
"""
  subprocess.run([sys.executable, "-c", code], env=dict(os.environ), check=True)
