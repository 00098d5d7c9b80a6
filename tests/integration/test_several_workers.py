"""Real processes under one strategy: who decodes what, and who gets it.

What TensorFlow decides by itself is looked at more closely in test_sharding.
"""

import collections
import pathlib
import re

import pytest
from processes import Process, ended, run_workers
from sharded_workers import (
  BY_PIPELINE,
  BY_TENSORFLOW,
  NUMBERS,
  RECORDS,
  WORKERS,
)


@pytest.fixture(scope="module")
def reports(native_ops, tmp_path_factory):
  """What each worker decoded and got, by the name of the way."""
  folder = tmp_path_factory.mktemp("workers")
  return run_workers("sharded_workers.py", folder, folder=folder)


def of_each_worker(reports, way):
  return [report[way] for report in reports]


def least_and_most_copies(way):
  """How often each number is to be emitted."""
  if "stall" in way:
    return 1, 3
  return (2, 3) if "fraction" in way else (2, 2)


@pytest.mark.parametrize("way", BY_TENSORFLOW)
def test_by_itself_each_number_is_decoded_by_one_worker_once(reports, way):
  shares = [report["decoded"] for report in of_each_worker(reports, way)]
  assert sorted(sum(shares, [])) == NUMBERS
  assert [len(share) for share in shares] == [len(NUMBERS) // WORKERS] * 2


@pytest.mark.parametrize("way", [w for w in BY_TENSORFLOW if "graph" not in w])
def test_natively_that_is_a_share_of_the_files(reports, way):
  for worker, report in enumerate(of_each_worker(reports, way)):
    assert report["decoded"] == sum(RECORDS[worker::WORKERS], [])


@pytest.mark.parametrize("way", [*BY_TENSORFLOW, *BY_PIPELINE])
def test_all_copies_stay_on_the_worker_that_has_decoded_them(reports, way):
  least, most = least_and_most_copies(way)
  for report in of_each_worker(reports, way):
    copies = collections.Counter(report["got"])
    assert sorted(copies) == report["decoded"]
    assert all(least <= count <= most for count in copies.values())


@pytest.mark.parametrize("way", BY_PIPELINE)
def test_explicit_shares_are_every_second_name_however_few(reports, way):
  """The last worker has less, or nothing, and the strategy still ends."""
  names = NUMBERS[: int(way.split()[0])]
  for worker, report in enumerate(of_each_worker(reports, way)):
    assert report["decoded"] == names[worker::WORKERS]


@pytest.mark.skipif(
  not pathlib.Path("experiments").is_dir(), reason="needs a checkout"
)
def test_a_loop_of_ones_own_trains_and_counts_for_all_workers(
  native_ops, tmp_path
):
  loop = Process(
    *("-m", "experiments.several_workers", "--workers=2", "--epochs=4"),
    name="loop",
    folder=tmp_path,
  )
  with ended([loop]):
    assert loop.wait() == 0, loop.everything()
  *used, total = re.findall(
    r"^(?:worker \d|together): ([\d,]+)", loop.output(), re.MULTILINE
  )
  assert sum(map(_number, used)) == _number(total) >= 4 * 1_297
  assert float(re.search(r"([\d.]+)% right", loop.output())[1]) > 90


def _number(text):
  return int(text.replace(",", ""))
