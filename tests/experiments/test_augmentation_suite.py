"""The probes of the suite `augmentation`, on tiny images. Nothing is timed."""

import pytest

from experiments.benchmark import augmentation as suite
from tfecho.training import augmentation


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
  monkeypatch.setattr(suite, "SMALL", 8)
  monkeypatch.setattr(suite, "BATCH_SIZE", 4)
  monkeypatch.setattr(suite, "_BATCHES", {8: 4})
  monkeypatch.setattr(suite, "SIZES", (8,))
  monkeypatch.setattr(suite, "_STRIDES", {8: 8})
  monkeypatch.setattr(suite, "_STEPS", 1)


@pytest.mark.parametrize("name", ["crop_flip", "mixup"])
def test_the_host_is_measured_per_image(name, monkeypatch):
  monkeypatch.setattr(suite.drive, "cost_of", lambda data, **_: lambda: 60.0)
  expected = 60.0 / 4 if name == "mixup" else 60.0
  assert suite._start_host(name, 8)() == expected


@pytest.mark.parametrize("name", ["crop_flip", "mixup"])
def test_elements_are_augmented_without_an_end(name):
  batch = suite.stride_batch(name, 8)
  data = suite._augmented(name, 8, batch)
  shape = [8, 8, 3] if batch == 1 else [4, 8, 8, 3]
  assert data.element_spec[0].shape.as_list() == shape
  assert len(list(data.take(9))) == 9


def test_the_device_is_measured_with_layers_of_keras_where_there_are_some():
  made = {name: make() for name, make in suite.on_device().items()}
  assert set(augmentation.NAMES) <= set(made)
  assert all(augment.side == "device" for augment in made.values())
  assert suite._start_device(suite.on_device()["crop_flip"], 8)() > 0


@pytest.mark.parametrize("start", [suite._start_fed, suite._start_augmenting])
def test_training_is_measured_on_either_side(start):
  assert start("crop_flip")() > 0


def test_all_are_compared_with_crop_flip():
  for case in suite.cases():
    compared = {b.ours for b in case.bounds if b.other == suite.BASELINE}
    assert compared == set(case.contenders) - {suite.BASELINE}
