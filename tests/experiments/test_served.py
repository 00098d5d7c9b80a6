"""Experiments that a tf.data service reads for: two workers, real processes."""

import collections
import itertools
import pathlib
import socket

import pytest
import tensorflow as tf
from absl import flags
from absl.testing import flagsaver
from plans import plan

import tfecho
from experiments import (
  arms,
  feeding,
  served,
  service_flags,
  training_run,
  workloads,
)
from experiments.counting import FreshCounter
from experiments.upstream import Upstream

BATCH_SIZE = 8
BUFFER = 16
FACTOR = 2
STEPS = 40
EMITTED = STEPS * BATCH_SIZE

pytestmark = pytest.mark.skipif(
  not pathlib.Path("experiments").is_dir(), reason="needs a checkout"
)


@pytest.fixture
def found(cluster, monkeypatch):
  """Lets experiments find the service."""
  monkeypatch.setenv(served.VARIABLE, cluster.address)


def _fed(settings):
  """The counter, and how often each ordinal and each pair with a label came."""
  counter = FreshCounter()
  copies, labels = collections.Counter(), set()
  batches = feeding.batches(settings, Upstream())
  for ordinals, (_, classes) in itertools.islice(batches, STEPS):
    counter.update(ordinals.numpy())
    copies.update(ordinals.numpy().tolist())
    labels.update(zip(ordinals.numpy().tolist(), classes.numpy().tolist()))
  return counter, copies, labels


@pytest.mark.parametrize("echo", served.ECHOES)
@pytest.mark.parametrize("kind", ["baseline", "after_read", "after_decode"])
def test_every_fresh_example_is_counted_once_whichever_worker_reads_it(
  found, make_settings, kind, echo
):
  settings = make_settings(
    kind,
    FACTOR,
    batch_size=BATCH_SIZE,
    echo_buffer=BUFFER,
    implementation="native",
    service_echo=echo,
  )
  counter, copies, labels = _fed(settings)
  factor = settings.arm.factor
  assert max(copies.values()) == factor
  assert len(labels) == counter.trained >= EMITTED / factor
  # What is missing waits in a buffer, here or on one of the two workers.
  assert counter.consumed < counter.trained + 1_000
  assert labels <= _numbered_labels(settings, counter.consumed)


def _numbered_labels(settings, count):
  """Of the first examples, by the numbers that they have."""
  workload = workloads.get(settings.workload, settings.preset)
  keys = served.numbered_keys(workload, settings.seed).take(count)
  labels = keys.map(lambda ordinal, key: (ordinal, workload.read(key)[1]))
  return {(int(ordinal), int(label)) for ordinal, label in labels}


def test_an_epoch_has_every_example_once_and_the_next_another_order():
  workload = workloads.get("resnet32_cifar10", "small")
  count = workload.train_examples
  numbered = served.numbered_keys(workload, seed=1).batch(count)
  (first, keys), (second, others) = numbered.take(2)
  assert first.numpy().tolist() == list(range(count))
  assert second.numpy().tolist() == list(range(count, 2 * count))
  assert sorted(keys.numpy()) == sorted(others.numpy()) == list(range(count))
  assert (keys != others).numpy().any()


@pytest.mark.parametrize("echo", served.ECHOES)
def test_without_numbers_too_every_example_comes(cluster, echo):
  epoch = 100
  pipeline = tfecho.Pipeline(
    tf.data.Dataset.range(epoch),
    read=tf.identity,
    decode=lambda key: key + 1_000,
    batch_size=BATCH_SIZE,
    shuffle_buffer=epoch,
    seed=1,
  )
  arm = arms.parse("after_decode_unshuffled", FACTOR)
  batches = served.Service(cluster.address, echo).batches(
    pipeline,
    arm,
    implementation="graph",
    echo=feeding.echo(arm, batch_size=BATCH_SIZE, echo_buffer=0),
  )
  seen = collections.Counter()
  # A worker that is ahead does not wait for the other to end its epoch.
  for batch in batches.take(20 * FACTOR * epoch):
    seen.update(batch.numpy().tolist())
    if len(seen) == epoch:
      break
  assert set(seen) == set(range(1_000, 1_000 + epoch))


def test_a_training_is_fed_by_the_service(found, make_settings):
  settings = make_settings("after_decode", FACTOR, service_echo="behind")
  counts = training_run.run(settings)["counts"]
  assert counts["emitted"] == settings.max_steps * settings.batch_size
  assert counts["read"] == counts["consumed"] >= counts["trained"]


# --- What is refused ----------------------------------------------------------


def _plan(**changed):
  served_runs = {
    "arms": ("baseline", "after_decode"),
    "factors": (4.0,),
    "seeds": (0, 1),
    "service_echo": "behind",
  }
  return plan(**{**served_runs, **changed})


def test_all_arms_are_fed_by_the_service():
  assert {run.service_echo for run in _plan()} == {"behind"}
  assert "data service, echo: behind" in str(_plan()[0])


@pytest.mark.parametrize(
  ("changed", "named"),
  [
    ({"arms": ("cached",)}, "what is cached is read here"),
    ({"arms": ("after_batch",), "service_echo": "workers"}, "got after_batch"),
    (
      {
        "arms": ("after_decode",),
        "service_echo": "workers",
        "measure": ("final",),
        "factor_schedules": ((4.0, 1.0),),
      },
      "constant factor.*got after_decode e=4:1",
    ),
    ({"upstream_ms": 2.0}, "without --upstream_ms: slow"),
    ({"store_ms": 2.0}, "without --store_ms: slow"),
    ({"measure": ("time",)}, "without --measure=time: slow"),
    ({"arms": ("on_stall",)}, "without --arms=on_stall: slow"),
  ],
)
def test_what_a_service_cannot_feed_is_refused(changed, named):
  with pytest.raises(ValueError, match=f"--data_service: .*{named}"):
    _plan(**changed)


def test_examples_that_have_no_numbers_are_not_counted(tmp_path):
  names = tf.data.Dataset.from_tensor_slices(["a", "b"])
  workload = workloads.get("resnet32_cifar10", "small")
  object.__setattr__(workload, "train", lambda: names)
  with pytest.raises(ValueError, match="fresh examples .* can't be counted"):
    served.check_keys(workload)


def test_what_calls_python_is_refused_before_workers_fail_at_it():
  def decode(key):
    return tf.numpy_function(lambda x: x, [key], tf.int64, stateful=False)

  message = "workers read and decode, and here that is done by Python"
  workload = workloads.get("resnet32_cifar10", "small")
  object.__setattr__(workload, "decode", lambda *record: decode(record[1]))
  with pytest.raises(ValueError, match=message):
    served.check_workload(workload)
  keys = tf.data.Dataset.range(4)
  pipeline = tfecho.Pipeline(keys, decode=decode, batch_size=2)
  with pytest.raises(ValueError, match=message):
    served.Service("nobody:0").batches(
      pipeline, arms.parse("baseline"), implementation="graph", echo={}
    )


def test_the_flags_say_where_the_echo_stands(monkeypatch):
  monkeypatch.setenv(served.VARIABLE, "")
  flags.FLAGS.mark_as_parsed()
  assert service_flags.echo() is None
  with socket.create_server(("127.0.0.1", 0)) as server:
    address = f"127.0.0.1:{server.getsockname()[1]}"
    with flagsaver.flagsaver(data_service=f"grpc://{address}"):
      assert service_flags.echo() == "behind"
      assert served.service("behind") == served.Service(address, "behind")
  with socket.socket() as nobody_listens:  # and nobody else gets its port
    nobody_listens.bind(("127.0.0.1", 0))
    address = f"127.0.0.1:{nobody_listens.getsockname()[1]}"
    for wrong in (address, "127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999"):
      with flagsaver.flagsaver(data_service=wrong):
        with pytest.raises(ValueError, match=f"--data_service: .* {wrong}: "):
          service_flags.echo()
  with flagsaver.flagsaver(service_echo="workers"):
    with pytest.raises(ValueError, match="--service_echo: must come with"):
      service_flags.echo()
