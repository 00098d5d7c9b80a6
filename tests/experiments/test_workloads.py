import numpy as np
import pytest
import tensorflow as tf
from datasets import needs_addresses, needs_fashion_mnist

from experiments import workloads

ALL = [
  ("resnet32_cifar10", "small"),
  pytest.param("resnet32_cifar10", "fashion", marks=needs_fashion_mnist),
  pytest.param("resnet32_cifar10", "fashion_deep", marks=needs_fashion_mnist),
  ("resnet50_imagenet", "small"),
  pytest.param("transformer_lm1b", "small", marks=needs_addresses),
  pytest.param("transformer_common_crawl", "small", marks=needs_addresses),
  ("ssd_coco", "small"),
]


@pytest.mark.parametrize("name, preset", ALL)
def test_a_workload_is_what_it_says(name, preset):
  workload = workloads.get(name, preset)
  assert (workload.name, workload.preset) == (name, preset)
  assert len(workload.train()) == workload.train_examples
  targets = list(workload.targets)
  assert targets == sorted(targets, reverse=not workload.maximize)


@pytest.mark.parametrize("name, preset", ALL)
def test_examples_fit_the_model_and_the_validation_set(name, preset):
  workload = workloads.get(name, preset)
  examples = workload.train().map(workload.read).map(workload.decode)
  batched = _augmented(workload, examples).batch(2)
  assert batched.element_spec == workload.validation().element_spec
  inputs, labels = next(iter(batched.repeat()))
  outputs = workload.model()(inputs)
  assert np.isfinite(float(workload.loss()(labels, outputs)))


@needs_fashion_mnist
@pytest.mark.parametrize(
  "preset, parameters", [("fashion", 78_426), ("fashion_deep", 469_082)]
)
def test_fashion_mnist_is_for_networks_of_two_depths(preset, parameters):
  model = workloads.get("resnet32_cifar10", preset).model()
  assert model.count_params() == parameters


def _augmented(workload, examples):
  if workload.augment is None:
    return examples
  seeds = tf.data.Dataset.from_tensors(tf.constant([1, 2], tf.int64))
  return tf.data.Dataset.zip((examples, seeds)).map(
    lambda example, seed: workload.augment(*example, seed=seed)
  )


def test_where_labels_are_places_nothing_else_may_move_them():
  with pytest.raises(ValueError, match="`augmentation` .*ssd_coco.* 'rand'"):
    workloads.get("ssd_coco", "small", augmentation="rand")


@pytest.mark.parametrize(
  "name, preset, message",
  [
    ("mnist", "small", "`workload` must be one of .* got 'mnist'"),
    ("resnet32_cifar10", "huge", "`preset` must be one of .* got 'huge'"),
  ],
)
def test_an_unknown_workload_or_preset_is_refused(name, preset, message):
  with pytest.raises(ValueError, match=message):
    workloads.get(name, preset)
