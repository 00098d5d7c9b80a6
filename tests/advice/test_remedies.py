"""What else would help, and what to watch."""

import dataclasses

import pytest

from tfecho.advice import remedies
from tfecho.advice.choosing import Choice
from tfecho.advice.costs import Cost


def found(measured, memory_bytes=None):
  return {x.kind: x for x in remedies.remedies(measured, memory_bytes)}


class TestCache:
  """All 1,000 elements of 1,000 bytes take 1 MB."""

  @pytest.fixture
  def finite(self, slow_storage):
    return dataclasses.replace(slow_storage, examples=1000)

  # bytes that there are, whether a cache fits
  @pytest.mark.parametrize(
    ("memory", "fits"), [(10**6, True), (10**6 - 1, False), (None, False)]
  )
  def test_is_advised_where_the_data_fits(self, finite, memory, fits):
    assert ("cache" in found(finite, memory)) is fits

  def test_says_where_how_large_and_how_fast(self, finite):
    cache = found(finite, 10**9)["cache"]
    assert "1,000 examples take 1 MB behind decode" in cache.text
    assert "before any echo" in cache.text
    assert cache.step_seconds == 0.010

  def test_keeps_records_where_examples_are_too_large(self, finite):
    large = dataclasses.replace(finite.places["decode"], element_bytes=1e9)
    places = {**finite.places, "decode": large}
    cache = found(dataclasses.replace(finite, places=places), 10**6)["cache"]
    assert "behind read" in cache.text

  def test_is_not_advised_for_data_without_end(self, slow_storage):
    assert "cache" not in found(slow_storage, 10**9)

  def test_is_not_advised_for_elements_of_unknown_size(self, finite):
    places = {
      name: dataclasses.replace(place, element_bytes=None)
      for name, place in finite.places.items()
    }
    assert not found(dataclasses.replace(finite, places=places), 10**9)

  def test_is_not_advised_where_what_follows_is_as_slow(
    self, heavy_augmentation
  ):
    decode = heavy_augmentation.places["decode"]
    slow = dataclasses.replace(decode, downstream=Cost(0.034, 0.068))
    places = {**heavy_augmentation.places, "decode": slow}
    finite = dataclasses.replace(
      heavy_augmentation, places=places, examples=10
    )
    assert not found(finite, 10**9)


class TestThreads:
  def test_are_advised_where_they_were_seen_to_help(self, slow_storage):
    measured = dataclasses.replace(
      slow_storage, more_threads=Cost(0.012, 0), num_threads=16
    )
    threads = found(measured)["threads"]
    assert "16 of its own it took 12 instead of 40 ms" in threads.text
    assert threads.step_seconds == 0.012

  # milliseconds with more threads, where training takes 10 and waits for 40
  @pytest.mark.parametrize(
    ("ms", "step"), [(2, 0.010), (20, 0.020), (37, None), (40, None)]
  )
  def test_can_gain_no_more_than_what_follows_allows(
    self, slow_storage, ms, step
  ):
    measured = dataclasses.replace(
      slow_storage, more_threads=Cost(ms / 1e3, 0), num_threads=16
    )
    threads = found(measured).get("threads")
    assert (threads and threads.step_seconds) == step


class TestParallelMap:
  # maps that are serial, milliseconds of the source, whether to say so
  @pytest.mark.parametrize(
    ("maps", "source_ms", "told"),
    [(1, 40, True), (0, 40, False), (1, 5, False)],
  )
  def test_is_advised_where_a_serial_one_holds_training_up(
    self, slow_storage, maps, source_ms, told
  ):
    stages = {**slow_storage.stages, "source": Cost(source_ms / 1e3, 0)}
    measured = dataclasses.replace(
      slow_storage, stages=stages, serial_maps=maps
    )
    assert ("parallel_map" in found(measured)) is told


def test_nothing_is_advised_where_training_waits_for_nothing(not_bound):
  measured = dataclasses.replace(
    not_bound, examples=10, serial_maps=1, more_threads=Cost(0.001, 0)
  )
  assert found(measured, 10**9) == {}


class TestWatch:
  def test_names_learning_rate_shuffle_and_its_bytes(self, slow_storage):
    text = "\n".join(remedies.watch(slow_storage, Choice("decode", 2.5, 0.016)))
    assert "learning rate" in text
    assert "512 examples, 512 kB" in text
    assert "2.5 times the steps" in text

  def test_counts_the_shuffle_as_the_pipeline_makes_it(self, slow_storage):
    large = dataclasses.replace(slow_storage, batch_size=256)
    text = "\n".join(remedies.watch(large, Choice("read", 2, 0.02)))
    assert "1,024 examples, 1.02 MB" in text

  def test_tells_what_is_different_for_batches(self, slow_storage):
    text = "\n".join(remedies.watch(slow_storage, Choice("batch", 2, 0.02)))
    assert "wants a lower one" in text
    assert "1 kB for each batch" in text

  def test_is_empty_without_an_echo(self, slow_storage):
    assert remedies.watch(slow_storage, Choice(None, 1, 0.04)) == []


def test_there_is_free_memory():
  assert remedies.free_memory() > 10**6
