"""Workloads that read from an S3 store: the same, and every request counted."""

import dataclasses
import functools
import importlib.util
import itertools
import math

import pytest
import tensorflow as tf
from absl import flags
from absl.testing import flagsaver
from datasets import needs_addresses
from plans import plan

from experiments import feeding, records, report_tables, training_run
from experiments import workloads as all_workloads
from experiments.store import objects, process, runs, server, url_flag
from experiments.upstream import Upstream

EXAMPLES = 40

needs_moto = pytest.mark.skipif(
  importlib.util.find_spec("moto") is None,
  reason="needs moto, for Python 3.10 and later",
)


def _few(name, preset, **options):
  workload = _GET(name, preset, **options)
  return dataclasses.replace(
    workload,
    train=lambda: tf.data.Dataset.range(EXAMPLES),
    train_examples=EXAMPLES,
  )


_GET = all_workloads.get


@pytest.fixture(scope="module")
def store():
  store = process.start()
  store.fill(_few("resnet32_cifar10", "small"))
  yield store
  store.close()


@pytest.fixture(autouse=True)
def few_examples(monkeypatch):
  """Makes the workload one of 40 examples."""
  monkeypatch.setattr(all_workloads, "get", _few)


# --- The link -----------------------------------------------------------------


def test_latencies_pass_together_and_bytes_one_after_the_other():
  link = server.Link(latency_seconds=2.0, bytes_per_second=10.0)
  assert link.arrival(100.0, 10) == 103.0
  assert link.arrival(100.0, 20) == 105.0  # behind the first
  assert link.arrival(104.0, 10) == 107.0  # nothing was in its way


def test_without_limits_an_answer_is_there_at_once():
  assert server.Link().arrival(100.0, 10**9) == 100.0


# --- What is put there comes back ---------------------------------------------


@pytest.mark.parametrize("name", ["resnet32_cifar10", "resnet50_imagenet"])
def test_examples_come_back_from_a_folder_as_they_were(name, tmp_path):
  workload = _few(name, "small")
  assert objects.put(workload, str(tmp_path)) == EXAMPLES
  stored = objects.stored(workload, f"{tmp_path}/")
  assert stored.train_examples == EXAMPLES
  _check_same_examples(workload, stored)


@needs_moto
def test_examples_come_back_from_s3_as_they_were(store):
  workload = _few("resnet32_cifar10", "small")
  before = store.counts()
  _check_same_examples(workload, store.holding(workload))
  after = store.counts()
  # The list of their names is an object, too.
  assert after["requests"] - before["requests"] == EXAMPLES + 1
  assert after["bytes"] > before["bytes"]


def _check_same_examples(workload, stored):
  examples, same = (
    each.train().map(each.read).map(each.decode) for each in (workload, stored)
  )
  assert examples.element_spec == same.element_spec
  pairs = list(tf.data.Dataset.zip((examples, same)))
  assert len(pairs) == EXAMPLES
  for (image, label), (image_again, label_again) in pairs:
    assert (image == image_again).numpy().all()
    assert label == label_again


@needs_addresses
def test_there_is_no_store_for_texts(tmp_path):
  workload = _GET("transformer_lm1b", "small")
  with pytest.raises(ValueError, match="transformer_lm1b has none"):
    objects.put(workload, str(tmp_path))


def test_the_flag_names_a_store(tmp_path):
  workload = _few("resnet32_cifar10", "small")
  objects.put(workload, str(tmp_path))
  flags.FLAGS.mark_as_parsed()
  assert url_flag.stored(workload) is workload
  with flagsaver.flagsaver(store=str(tmp_path)):
    _check_same_examples(workload, url_flag.stored(workload))
  with flagsaver.flagsaver(store=f"{tmp_path}/none"):
    with pytest.raises(ValueError, match=f"--store: {tmp_path}/none has no ex"):
      url_flag.stored(workload)


@pytest.mark.one_stack
def test_a_store_of_ones_own_is_compared_by_time_and_fresh_examples(
  make_settings, tmp_path
):
  objects.put(_few("resnet32_cifar10", "small"), str(tmp_path))
  planned = _plan(store=str(tmp_path), store_ms=None)
  assert len(planned) == 4 * 2
  assert {run.store for run in planned} == {str(tmp_path)}
  assert str(planned[0]).endswith(f", store {tmp_path}")
  settings = make_settings("after_read", store=str(tmp_path))
  result = training_run.run(settings)
  record = records.make(settings, {}, result)
  [row] = runs.summarize([record])
  assert (row.requests, row.kilobytes) == (None, None)
  assert row.consumed.median == result["counts"]["consumed"] > 0
  shown = report_tables.tables([record])
  [table] = [t for t in shown if "object store" in t.title]
  assert table.rows[0][2] == str(tmp_path)
  assert table.rows[0][4:6] == ("-", "-")


@pytest.mark.parametrize(
  ("changed", "named"),
  [
    ({"measure": ("target",)}, "--measure: must name time for --store,"),
    ({"upstream_ms": 2.0}, "--upstream_ms: must be 0 with --store, which"),
    ({}, "--store: nowhere has no examples: .*nowhere/names.txt"),
  ],
)
def test_a_store_of_ones_own_has_to_be_one(changed, named):
  with pytest.raises(ValueError, match=named):
    _plan(**{"store": "nowhere", "store_ms": None, **changed})


# --- Trained on ---------------------------------------------------------------


@needs_moto
@pytest.mark.parametrize("kind", ["baseline", "cached", "after_read"])
def test_a_training_is_fed_the_same_from_s3_as_from_memory(
  make_settings, store, kind, implementation
):
  settings = make_settings(kind, 2, implementation=implementation)
  [memory, s3] = (
    itertools.islice(feeding.batches(settings, Upstream(), store=where), 12)
    for where in (None, store)
  )
  for (ordinals, (images, labels)), (same, (pixels, kept)) in zip(memory, s3):
    assert (ordinals == same).numpy().all() and (labels == kept).numpy().all()
    assert (images == pixels).numpy().all()


@needs_moto
def test_a_run_says_what_it_has_fetched(make_settings, monkeypatch, store):
  monkeypatch.setattr(training_run, "_filled_store", lambda *_: store)
  # Four epochs; what is looked at beforehand is an epoch by itself.
  settings = make_settings("cached", store_ms=0.0, max_steps=20)
  counts = training_run.run(settings)["counts"]
  assert counts["requests"] == counts["read"] == counts["consumed"] == EXAMPLES
  assert counts["emitted"] == 4 * EXAMPLES
  assert counts["bytes"] > 50 * EXAMPLES
  assert counts["first_wait_seconds"] > 0


@needs_moto
def test_a_store_that_cannot_start_is_an_error_not_a_wait():
  with pytest.raises(RuntimeError, match="ended with status"):
    process.start(kb_per_second=-1)


# --- Planned, and reported ----------------------------------------------------


def _plan(**changed):
  stored_runs = {
    "arms": ("baseline", "cached", "after_read", "after_decode"),
    "factors": (4.0,),
    "seeds": (0, 1),
    "measure": ("time",),
    "store_ms": 30.0,
  }
  return plan(**{**stored_runs, **changed})


@needs_moto
def test_every_arm_and_seed_reads_from_the_store():
  planned = _plan(store_kb_per_second=100.0)
  assert len(planned) == 4 * 2
  assert {(run.store_ms, run.store_kb_per_second) for run in planned} == {
    (30.0, 100.0)
  }
  assert not any(run.upstream_ms or run.is_fast for run in planned)


@needs_moto
@pytest.mark.parametrize(
  ("changed", "named"),
  [
    ({"upstream_ms": 2.0}, "--upstream_ms: must be 0 with --store_ms"),
    ({"measure": ("target",)}, "--measure: must name time for --store_ms"),
    ({"store_ms": -1.0}, "--store_ms: must be finite and at least 0"),
    ({"store": "s3://a/b"}, "--store_ms: must not come with --store"),
    (
      {"store_ms": None, "upstream_ms": 2.0, "store_kb_per_second": 1.0},
      "--store_kb_per_second: must come with --store_ms",
    ),
    (
      {"workload": "transformer_lm1b", "arms": ("baseline",)},
      "--store_ms: a store has images",
    ),
  ],
)
def test_a_store_goes_with_nothing_else_that_is_slow(changed, named):
  with pytest.raises(ValueError, match=named):
    _plan(**changed)


def test_without_moto_the_extra_is_named(monkeypatch):
  monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
  with pytest.raises(ValueError, match=r"--store_ms: .*tfecho\[store\]"):
    _plan()


def _stored_record(make_record, kind, *, seconds, requests, **changed):
  record = make_record(kind, 4, store_ms=30.0, **changed)
  record["counts"] |= {
    "seconds": seconds,
    "wait_seconds": seconds / 2,
    "first_wait_seconds": 4.0,
    "requests": requests,
    "bytes": 1_000 * requests,
  }
  record["curve"]["seconds"] = 3 * [seconds]
  return record


@pytest.fixture
def finished(make_record):
  stored = functools.partial(_stored_record, make_record)
  return [
    stored("baseline", seconds=36.0, requests=900),
    stored("cached", seconds=16.0, requests=40),
    stored("after_read", seconds=6.0, requests=250, seed=0),
    stored("after_read", seconds=16.0, requests=260, seed=1, metric=0.1),
  ]


def test_times_include_that_until_the_first_batch(finished):
  baseline, cached, echo = runs.summarize(finished)
  assert (baseline.seconds.median, cached.seconds.median) == (40.0, 20.0)
  assert (baseline.speedup, cached.speedup, echo.speedup) == (1.0, 2.0, None)
  assert baseline.waiting == pytest.approx((18 + 4) / (36 + 4))
  assert (echo.reached, echo.runs, echo.seconds.low) == (1, 2, 10.0)
  assert echo.seconds.high == math.inf
  assert (echo.requests.low, echo.requests.high) == (250, 260)
  assert echo.kilobytes.high == 260


def test_the_report_has_what_was_fetched(finished):
  [table] = report_tables.tables(finished)
  assert "object store" in table.title
  assert [row[:5] for row in table.rows] == [
    ("baseline", "1/1", "30 ms", "800", "900"),
    ("cached", "1/1", "30 ms", "800", "40"),
    ("after_read e=4", "1/2", "30 ms", "800", "255 (250-260)"),
  ]


def test_a_store_is_a_part_of_the_settings(finished):
  settings = [records.settings_of(record) for record in finished]
  assert [s.to_dict()["store_ms"] for s in settings] == [30.0] * 4
  assert "store of 30 ms" in str(settings[0])
