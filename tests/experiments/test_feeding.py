"""What each arm feeds, counted by hand beside what the counters say."""

import collections
import dataclasses
import itertools

import pytest
import tensorflow as tf

from experiments import feeding, workloads
from experiments.counting import FreshCounter
from experiments.upstream import Upstream

BATCH_SIZE = 8
BUFFER = 32  # four batches
STEPS = 40
EMITTED = STEPS * BATCH_SIZE
EXAMPLE_LEVEL = ("read", "decode", "augment")


def _fed(settings):
  """Returns ordinals by batch, images by ordinal, the counter, the upstream."""
  upstream = Upstream()
  counter = FreshCounter()
  ordinals, images = [], collections.defaultdict(list)
  batches = itertools.islice(feeding.batches(settings, upstream), STEPS)
  for batch, (inputs, _) in batches:
    counter.update(batch.numpy())
    ordinals.append(batch.numpy().tolist())
    for ordinal, image in zip(batch.numpy(), inputs.numpy()):
      images[int(ordinal)].append(image.tobytes())
  return ordinals, images, counter, upstream


@pytest.fixture
def fed(make_settings, implementation):
  def feed(kind, factor=4):
    return _fed(
      make_settings(
        kind,
        factor,
        batch_size=BATCH_SIZE,
        echo_buffer=BUFFER,
        implementation=implementation,
      )
    )

  return feed


def test_the_baseline_feeds_every_example_once_in_order(fed):
  ordinals, _, counter, upstream = fed("baseline")
  assert sum(ordinals, []) == list(range(EMITTED))
  assert counter.consumed == counter.trained == EMITTED
  assert upstream.read >= EMITTED


@pytest.mark.parametrize("place", EXAMPLE_LEVEL)
@pytest.mark.parametrize("factor", [2, 4])
def test_without_a_shuffle_copies_follow_each_other(fed, place, factor):
  ordinals, _, counter, upstream = fed(f"after_{place}_unshuffled", factor)
  expected = [i for i in range(EMITTED // factor) for _ in range(factor)]
  assert sum(ordinals, []) == expected
  assert counter.consumed == counter.trained == EMITTED // factor
  assert counter.distinct_share == 1 / factor
  assert upstream.read >= counter.consumed


@pytest.mark.parametrize("factor", [2, 4])
def test_an_echo_of_batches_repeats_whole_batches(fed, factor):
  ordinals, _, counter, upstream = fed("after_batch", factor)
  for group in range(STEPS // factor):
    fresh = list(range(group * BATCH_SIZE, (group + 1) * BATCH_SIZE))
    assert ordinals[group * factor : (group + 1) * factor] == [fresh] * factor
  assert counter.consumed == counter.trained == EMITTED // factor
  assert counter.repeat_distance == BATCH_SIZE
  assert upstream.read >= counter.consumed


@pytest.mark.parametrize("kind", ["after_decode", "after_augment"])
def test_a_shuffle_holds_no_more_than_its_buffer(fed, kind, implementation):
  ordinals, _, counter, upstream = fed(kind)
  copies = collections.Counter(sum(ordinals, []))
  assert max(copies.values()) <= 4
  assert counter.trained == len(copies)
  assert counter.consumed == max(copies) + 1
  # Emitted copies, and those that still wait, come from what was consumed.
  # The graph's buffer holds as many copies as the native one holds examples
  # with all of theirs.
  assert EMITTED / 4 <= counter.consumed <= EMITTED / 4 + BUFFER
  assert upstream.read >= counter.consumed
  if implementation == "native":
    assert counter.distinct_share == 1


def test_an_echo_on_stall_feeds_all_in_order_and_none_too_often(
  make_settings, native_ops
):
  ordinals, _, counter, upstream = _fed(
    make_settings(
      "on_stall",
      batch_size=BATCH_SIZE,
      echo_buffer=BUFFER,
      implementation="native",
    )
  )
  first_seen = list(dict.fromkeys(sum(ordinals, [])))
  assert first_seen == list(range(counter.trained))
  copies = collections.Counter(sum(ordinals, []))
  assert max(copies.values()) <= 8
  assert upstream.read >= counter.consumed == counter.trained


def test_a_cache_reads_every_example_once_and_feeds_it_in_every_epoch(
  fed, monkeypatch
):
  few = dataclasses.replace(
    workloads.get("resnet32_cifar10", "small"),
    train=lambda: tf.data.Dataset.range(BUFFER),
    train_examples=BUFFER,
  )
  monkeypatch.setattr(workloads, "get", lambda name, preset, **_: few)
  fed("cached")  # which leaves nothing in the cache of
  ordinals, images, counter, upstream = fed("cached")
  assert upstream.read == counter.consumed == counter.trained == BUFFER
  fed_in = list(zip(*[iter(sum(ordinals, []))] * BUFFER))
  assert len(fed_in) == EMITTED // BUFFER
  assert len(set(fed_in)) == len(fed_in)  # each epoch in another order
  assert all(sorted(epoch) == list(range(BUFFER)) for epoch in fed_in)
  # Copies are augmented anew.
  assert any(len(set(copies)) > 1 for copies in images.values())


def test_shuffled_batches_stay_whole(fed):
  ordinals, _, counter, _ = fed("after_batch_shuffled")
  assert len({tuple(batch) for batch in ordinals}) < STEPS
  for batch in ordinals:
    start = batch[0]
    assert start % BATCH_SIZE == 0
    assert batch == list(range(start, start + BATCH_SIZE))
  assert counter.repeat_distance > BATCH_SIZE


@pytest.mark.parametrize(
  "kind, fresh_pixels",
  [
    ("after_read", True),
    ("after_decode", True),
    ("after_augment", False),
    ("after_batch", False),
  ],
)
def test_a_copy_is_augmented_anew_if_the_echo_stands_before(
  fed, kind, fresh_pixels
):
  _, images, _, _ = fed(kind)
  complete = [copies for copies in images.values() if len(copies) == 4]
  assert complete
  assert any(len(set(copies)) > 1 for copies in complete) == fresh_pixels


def test_an_epoch_has_every_example_once_and_the_next_another_order(
  make_settings,
):
  settings = make_settings(batch_size=1297)
  epochs = itertools.islice(feeding.batches(settings, Upstream()), 2)
  (_, (first, _)), (_, (second, _)) = epochs

  def distinct(images):
    return collections.Counter(image.tobytes() for image in images.numpy())

  assert first.shape == second.shape
  assert len(distinct(first)) > 1_000  # crops of all of them
  assert not (first.numpy() == second.numpy()).all()


def test_where_keys_are_many_only_a_part_of_them_is_shuffled(
  make_settings, monkeypatch
):
  few = dataclasses.replace(
    workloads.get("resnet32_cifar10", "small"),
    read=lambda key: (tf.zeros([8, 8, 1], tf.uint8), key),
    shuffle_buffer=4,
  )
  monkeypatch.setattr(workloads, "get", lambda name, preset, **_: few)
  [(_, (_, keys))] = feeding.batches(
    make_settings(batch_size=64), Upstream()
  ).take(1)
  keys = keys.numpy()
  assert (keys != range(64)).any()
  # The k-th key is one of those that have come into the buffer by then.
  assert all(key <= place + 3 for place, key in enumerate(keys))


def test_the_same_seed_feeds_the_same_and_another_seed_does_not(fed):
  first, again = fed("after_decode"), fed("after_decode")
  assert first[:2] == again[:2]


def test_seeds_differ_in_what_they_feed(make_settings):
  fed = [_fed(make_settings("after_decode", seed=seed)) for seed in (0, 1)]
  assert fed[0][1] != fed[1][1]


@pytest.mark.parametrize(
  "workload", ["resnet32_cifar10", "resnet50_imagenet"]
)
def test_an_augmentation_comes_behind_the_one_of_the_workload(
  make_settings, workload
):
  [plain, augmented] = [
    next(
      iter(
        feeding.batches(
          make_settings(
            workload=workload, batch_size=32, augmentation=augmentation
          ),
          Upstream(),
        )
      )
    )
    for augmentation in (None, "rand")
  ]
  (ordinals, (images, labels)), (same, (changed, kept)) = plain, augmented
  assert (ordinals == same).numpy().all() and (labels == kept).numpy().all()
  assert (images.dtype, images.shape) == (changed.dtype, changed.shape)
  assert (images != changed).numpy().any()
