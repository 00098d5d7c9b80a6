import json
import math

import pytest

from experiments import arms, learning_rates, tune, workloads

COMMON = {
  "workload": "resnet32_cifar10",
  "preset": "small",
  "batch_size": 32,
  "measure": "target",
}


def _entry(kind, factor, rate, **changed):
  tuned = {"kind": kind, "factor": factor, "learning_rate": rate}
  return {**COMMON, **tuned, **changed}


def _find(entries, kind, factor, **options):
  arm = arms.parse(kind, factor)
  return learning_rates.find(entries, arm, **options, **COMMON)


def test_each_arm_finds_its_own_rate():
  entries = [
    _entry("baseline", 1, 0.004),
    _entry("after_batch", 4, 0.001),
    _entry("after_batch", 4, 0.009, measure="final"),
  ]
  assert _find(entries, "baseline", 1) == 0.004
  assert _find(entries, "after_batch", 4) == 0.001


@pytest.mark.parametrize("factor, rate", [(1.5, 0.2), (3, 0.4), (100, 0.8)])
def test_a_factor_that_was_not_tuned_takes_the_nearest_ratio(factor, rate):
  entries = [_entry("after_decode", e, e / 10) for e in (2, 4, 8)]
  assert _find(entries, "after_decode", factor) == rate


def test_an_arm_that_was_not_tuned_takes_the_rate_of_one_that_trains_alike():
  entries = [_entry("after_decode", 4, 0.2), _entry("baseline", 1, 0.1)]
  assert _find(entries, "after_read", 4) == 0.2
  assert _find(entries, "cached", 1) == 0.1
  assert _find([*entries, _entry("after_read", 4, 0.3)], "after_read", 4) == 0.3


def test_an_augmentation_has_rates_of_its_own_or_those_without_one():
  entries = [
    _entry("baseline", 1, 0.004),
    _entry("baseline", 1, 0.001, augmentation="rand"),
  ]
  assert _find(entries, "baseline", 1) == 0.004
  assert _find(entries, "baseline", 1, augmentation="rand") == 0.001
  assert _find(entries, "baseline", 1, augmentation="trivial") == 0.004
  with pytest.raises(ValueError, match="no learning rate was tuned"):
    _find(entries[1:], "baseline", 1)


def test_an_arm_that_was_not_tuned_is_refused_by_name():
  with pytest.raises(ValueError, match="kind=after_batch.*experiments.tune"):
    _find([_entry("baseline", 1, 0.004)], "after_batch", 4)


@pytest.mark.parametrize("text", [None, "{", "[]", '{"entries": [{}]}'])
def test_a_file_without_rates_is_refused_by_name(tmp_path, text):
  path = tmp_path / "rates.json"
  if text is not None:
    path.write_text(text)
  with pytest.raises(ValueError, match="--learning_rates: .*rates.json"):
    learning_rates.load(path)


def test_an_update_replaces_an_arm_and_keeps_the_others(tmp_path):
  path = tmp_path / "rates.json"
  kept = _entry("baseline", 1, 0.004)
  learning_rates.update(path, [kept, _entry("after_batch", 4, 0.001)])
  learning_rates.update(path, [_entry("after_batch", 4, 0.002)])
  entries = learning_rates.load(path)
  assert kept in entries and len(entries) == 2
  augmented = _entry("baseline", 1, 0.003, augmentation="rand")
  learning_rates.update(path, [augmented])
  assert kept in learning_rates.load(path)
  assert _find(entries, "after_batch", 4) == 0.002


def test_the_file_in_the_repository_covers_the_default_comparison():
  entries = learning_rates.load(learning_rates.DEFAULT_PATH)
  workload = workloads.get("resnet32_cifar10", "small")
  assert COMMON["batch_size"] == workload.batch_size
  for kind in ("baseline", "after_decode", "after_augment", "after_batch"):
    for measure in ("target", "final"):
      arm = arms.parse(kind, 4)
      common = {**COMMON, "measure": measure}
      assert 0 < learning_rates.find(entries, arm, **common) < 1


def test_tuning_takes_the_rate_with_the_fewest_fresh_examples(make_record):
  # By the geometric mean: one bad seed of a rate weighs as its ratio says.
  needed = {0.1: (900, 400), 0.2: (500, 500), 0.3: (100, 3600)}
  trials = [
    make_record(learning_rate=rate, seed=seed, consumed=consumed)
    for rate, by_seed in needed.items()
    for seed, consumed in enumerate(by_seed)
  ]
  entry = tune.entry(trials)
  assert entry["learning_rate"] == 0.2
  assert entry["trials"] == {"0.1": 600, "0.2": 500, "0.3": 600}
  json.dumps(entry, allow_nan=False)


def test_tuning_counts_a_missed_target_as_twice_the_run(make_record):
  trials = [
    make_record(learning_rate=0.1, consumed=200, metric=0.6),  # reaches 0.5
    make_record(learning_rate=0.2, consumed=250, metric=0.95),  # reaches both
    make_record(learning_rate=0.3, consumed=300, metric=0.1),  # none
  ]
  entry = tune.entry(trials)
  assert entry["learning_rate"] == 0.2
  assert entry["trials"] == {"0.1": 283, "0.2": 250, "0.3": 600}


def test_tuning_for_the_final_metric_takes_the_best(make_record):
  trials = [
    make_record(measure="final", learning_rate=rate, metric=metric)
    for rate, metric in [(0.1, 0.7), (0.2, 0.9), (0.3, 0.8)]
  ]
  assert tune.entry(trials)["learning_rate"] == 0.2


def test_tuning_does_not_take_a_rate_at_which_training_diverges(make_record):
  trials = []
  for rate, metric in [(0.1, 4.5), (0.2, 4.0), (0.3, math.inf)]:
    trial = make_record(measure="final", learning_rate=rate, metric=metric)
    trial["metric"]["maximize"] = False
    trials.append(trial)
  entry = tune.entry(trials)
  assert entry["learning_rate"] == 0.2
  assert entry["trials"] == {"0.1": 4.5, "0.2": 4.0, "0.3": None}
  json.dumps(entry, allow_nan=False)


def test_tuning_says_under_what_augmentation_it_was(make_record):
  entry = tune.entry([make_record(augmentation="rand")])
  rate = learning_rates.find(
    [entry],
    arms.parse("baseline"),
    augmentation="rand",
    **{**COMMON, "batch_size": 8},
  )
  assert rate == entry["learning_rate"]


def test_quasi_random_rates_cover_the_bounds_and_go_on_if_there_are_more():
  rates = tune.quasi_random_rates(16, lowest=0.001, highest=0.1)
  assert all(0.001 <= rate <= 0.1 for rate in rates)
  # Half of any power of two of them lies in each half, on a logarithmic scale.
  assert 7 <= sum(rate < 0.01 for rate in rates) <= 9
  first = tune.quasi_random_rates(8, lowest=0.001, highest=0.1)
  assert first == rates[:8]
  assert len(set(rates)) == 16


def test_the_rates_in_the_repository_are_what_the_searches_found():
  for entry in learning_rates.load(learning_rates.DEFAULT_PATH):
    is_better = min if entry["measure"] == "target" else max
    trials = entry["trials"]
    best = is_better(trials, key=trials.get)  # the first, if several are
    assert entry["learning_rate"] == float(best), entry


def test_the_rates_in_the_repository_were_tried_alike_for_every_arm():
  tried = {}
  for entry in learning_rates.load(learning_rates.DEFAULT_PATH):
    of_a_search = {**entry, "learning_rate": None, "trials": None}
    of_a_search.update(kind=None, factor=None)
    key = json.dumps(of_a_search, sort_keys=True)
    tried.setdefault(key, set()).add(tuple(entry["trials"]))
  assert all(len(grids) == 1 for grids in tried.values()), tried
