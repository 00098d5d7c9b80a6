"""A tf.data service of real processes, of which some are killed.

How often an element comes then is what TensorFlow promises and an echo makes of
it: see the table in BUILD_NOTES.md.
"""

import collections
import pathlib
import threading

import pytest
import tensorflow as tf
from iterators import values
from processes import PATIENCE
from services import WORKERS
from transformations import echo, shuffled_echo

import tfecho

service = tf.data.experimental.service
ELEMENTS = 200
FACTOR = 2

pytestmark = pytest.mark.skipif(
  not pathlib.Path("experiments").is_dir(), reason="needs a checkout"
)


def counted(folder):
  """Numbers, and a mark in `folder` for each that is made, by whomever."""

  def mark(i):
    name = tf.strings.join(
      [str(folder), "/", tf.strings.as_string(i), "-",
       tf.strings.as_string(tf.timestamp(), precision=6)]
    )
    with tf.control_dependencies([tf.io.write_file(name, "")]):
      return tf.identity(i)

  return tf.data.Dataset.range(ELEMENTS).map(mark)


def copies_of(elements):
  return collections.Counter(values(elements))


ECHOES = {"echo": echo(FACTOR), "shuffle_after_echo": shuffled_echo(FACTOR, 8)}
each_echo = pytest.mark.parametrize("name", ECHOES)


@each_echo
@pytest.mark.parametrize("policy", ["distributed_epoch", "DYNAMIC"])
def test_behind_the_service_each_element_is_made_and_sent_once(
  cluster, implementation, name, policy, tmp_path
):
  if policy == "DYNAMIC":
    policy = service.ShardingPolicy.DYNAMIC
  data = counted(tmp_path).apply(cluster.distribute(policy))
  copies = copies_of(ECHOES[name](data, implementation))
  assert copies == dict.fromkeys(range(ELEMENTS), FACTOR)
  assert len(list(tmp_path.iterdir())) == ELEMENTS


@each_echo
def test_on_the_workers_each_element_is_made_once_and_sent_often(
  cluster, native_ops, name, tmp_path
):
  data = ECHOES[name](counted(tmp_path), "native")
  copies = copies_of(data.apply(cluster.distribute("distributed_epoch")))
  assert copies == dict.fromkeys(range(ELEMENTS), FACTOR)
  assert len(list(tmp_path.iterdir())) == ELEMENTS


@each_echo
def test_without_sharding_every_worker_makes_everything(
  cluster, implementation, name, tmp_path
):
  data = ECHOES[name](counted(tmp_path), implementation)
  copies = copies_of(data.apply(cluster.distribute("parallel_epochs")))
  assert copies == dict.fromkeys(range(ELEMENTS), FACTOR * WORKERS)
  assert len(list(tmp_path.iterdir())) == ELEMENTS * WORKERS


def test_on_stall_repeats_what_the_service_is_late_with(cluster, tmp_path):
  data = counted(tmp_path).apply(cluster.distribute("distributed_epoch"))
  data = data.apply(tfecho.echo_on_stall(3, buffer_size=8))
  copies = copies_of(data)
  assert sorted(copies) == list(range(ELEMENTS))
  assert max(copies.values()) <= 3
  assert len(list(tmp_path.iterdir())) == ELEMENTS


class TestCoordinatedReads:
  """Several trainers that each get one of the same round of elements."""

  def elements(self, dataset, rounds=10):
    """What each of two trainers gets, that reads on its own."""
    got = [[], []]

    def train(index):
      data = dataset(consumer_index=index, num_consumers=2, job_name=self.job)
      got[index] += values(data.take(rounds))

    threads = [
      threading.Thread(target=train, args=(i,), daemon=True) for i in (0, 1)
    ]
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join(PATIENCE)
    return got

  def test_behind_them_copies_stay_with_one_trainer(
    self, cluster, implementation
  ):
    self.job = f"behind-{implementation}"
    numbers = tf.data.Dataset.range(10**6).repeat()

    def dataset(**options):
      data = numbers.apply(cluster.distribute("parallel_epochs", **options))
      return echo(FACTOR)(data, implementation)

    for elements in self.elements(dataset):
      assert len(elements) == 10
      assert elements[::2] == elements[1::2]

  def test_in_front_of_them_each_trainer_gets_a_copy(
    self, cluster, implementation
  ):
    self.job = f"in-front-{implementation}"
    numbers = tf.data.Dataset.range(10**6).repeat()
    numbers = echo(FACTOR)(numbers, implementation)

    def dataset(**options):
      return numbers.apply(cluster.distribute("parallel_epochs", **options))

    one, other = self.elements(dataset)
    assert one == other


def begun(dataset, count=20):
  """An iterator over `dataset`, and so many of its elements."""
  iterator = iter(dataset)
  return iterator, [int(next(iterator)) for _ in range(count)]


def placed(place, cluster, policy):
  """Numbers, echoed on this side of the service or on the other one."""
  numbers = tf.data.Dataset.range(ELEMENTS)
  distributed = cluster.distribute(policy)
  if place == "behind":
    return echo(FACTOR)(numbers.apply(distributed), "native")
  return echo(FACTOR)(numbers, "native").apply(distributed)


each_place = pytest.mark.parametrize("place", ["behind", "in front"])


@each_place
def test_a_worker_that_is_killed_takes_elements_along_and_doubles_none(
  cluster, place
):
  iterator, elements = begun(placed(place, cluster, "distributed_epoch"))
  cluster.restart_worker(0)
  copies = collections.Counter(elements + values(iterator))
  assert set(copies) <= set(range(ELEMENTS))
  assert max(copies.values()) <= FACTOR
  if place == "behind":  # No copy was on its way.
    assert set(copies.values()) == {FACTOR}


def test_without_sharding_nothing_is_lost_and_some_elements_come_again(cluster):
  iterator, elements = begun(placed("in front", cluster, "parallel_epochs"))
  cluster.restart_worker(0)
  copies = collections.Counter(elements + values(iterator))
  assert set(copies) == set(range(ELEMENTS))
  assert min(copies.values()) >= WORKERS * FACTOR


@each_place
def test_a_dispatcher_that_is_started_again_loses_no_more_than_was_on_its_way(
  cluster, place
):
  iterator, elements = begun(placed(place, cluster, "distributed_epoch"))
  cluster.dispatcher.kill()
  cluster.start_dispatcher()
  copies = collections.Counter(elements + values(iterator))
  assert set(copies) <= set(range(ELEMENTS))
  assert set(copies.values()) == {FACTOR}
  # What it gives out it notes first, and may be killed in between.
  assert len(copies) >= ELEMENTS - WORKERS
