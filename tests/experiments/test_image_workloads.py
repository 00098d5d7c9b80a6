"""The image workloads from their data to a training that goes on again."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from datasets import needs_fashion_mnist, needs_tensorflow_datasets
from prepared_data import prepare

from experiments import feeding, workloads
from experiments.data import prepared
from experiments.workloads import resnet
from experiments.workloads.ssd import network
from experiments.workloads.ssd.boxes import SSD300
from tfecho.training import BackupAndRestore, Timeline, train

CLASSIFIERS = [
  ("resnet32_cifar10", "small"),
  pytest.param("resnet32_cifar10", "fashion", marks=needs_fashion_mnist),
  ("resnet50_imagenet", "small"),
]
SMALL = [*CLASSIFIERS, ("ssd_coco", "small")]
MOCKED = [
  ("resnet32_cifar10", "paper"),
  ("resnet50_imagenet", "paper"),
]
PAPER = [
  *MOCKED,
  ("resnet50_imagenet", "paper_fused"),
  ("ssd_coco", "paper"),
]
STEPS = 4


class Steps(keras.callbacks.Callback):
  """Counts steps, and ends a training as Ctrl-C would after some of them."""

  def __init__(self, at_most=STEPS):
    super().__init__()
    self._at_most = at_most
    self.made = 0

  def on_train_batch_end(self, batch, logs=None):
    self.made += 1
    if self.made > self._at_most:
      raise KeyboardInterrupt


def _batches(workload, *, batch_size=2, **echo):
  pipeline = feeding.plain_pipeline(
    workload, batch_size=batch_size, shuffle_buffer=1_000, seed=1
  )
  return pipeline.dataset(repeat=True, implementation="graph", **echo)


def _train(workload, batches, *, steps, epoch_steps, rate, callbacks=()):
  return train(
    workload.model,
    batches,
    length=f"{steps}ba",
    epoch=f"{epoch_steps}ba",
    optimizer=workload.optimizer,
    learning_rate=rate,
    loss=workload.loss(),
    callbacks=callbacks,
    seed=1,
    verbose=0,
    jit_compile=False,
  )


def _evaluate(workload, model, batches=-1):
  metric = workload.metric()
  for inputs, labels in workload.validation().take(batches):
    metric.update_state(labels, model.predict_on_batch(inputs))
  return float(metric.result())


def _train_with_backup(workload, directory, steps):
  batches = _batches(workload, echo_after="decode", factor=2, echo_buffer=4)
  backup = BackupAndRestore(directory, data=batches, every_steps=1)
  return _train(
    workload,
    backup.data,
    steps=STEPS,
    epoch_steps=STEPS,
    rate=0.01,
    callbacks=[steps, backup],
  )


def _check(workload, directory):
  """It trains, is interrupted, goes on where it was, and is evaluated."""
  with pytest.raises(KeyboardInterrupt):
    _train_with_backup(workload, directory, Steps(at_most=2))
  rest = Steps()
  result = _train_with_backup(workload, directory, rest)
  assert (rest.made, result.steps) == (STEPS - 2, STEPS)
  assert np.isfinite(result.curve[-1]["loss"])
  assert 0 <= _evaluate(workload, result.model, batches=1) <= 1


def _with_fewer_layers(workload):
  """The same with a model that is built in seconds."""
  shape = workload.validation().element_spec[0].shape[1:]
  if workload.name == "resnet32_cifar10":
    model = resnet.cifar_resnet(8, input_shape=shape, classes=10)
  elif workload.name == "ssd_coco":
    model = _small_ssd300()
  else:
    model = resnet.bottleneck_resnet(
      (1, 1, 1, 1), width=4, input_shape=shape, classes=1_000
    )
  return dataclasses.replace(
    workload, model=lambda: keras.models.clone_model(model)
  )


def _small_ssd300():
  """The outputs of SSD300, from few channels."""
  extras = [x._replace(inner=8, outer=8) for x in network.SSD300_EXTRAS]
  return network.detector(
    300, SSD300, classes=80, blocks=(1, 1, 1), width=4, extras=extras
  )


@pytest.mark.parametrize(
  "name, preset", [*SMALL, ("resnet50_imagenet", "large_files")]
)
def test_a_small_workload_trains_and_goes_on(name, preset, tmp_path):
  _check(workloads.get(name, preset), tmp_path)


def _share_of_the_most_frequent(workload):
  """The accuracy of whoever always says the same."""
  labels = np.concatenate([labels for _, labels in workload.validation()])
  return np.bincount(labels).max() / len(labels)


@pytest.mark.one_stack
@pytest.mark.parametrize("name, preset", CLASSIFIERS)
def test_a_small_classifier_learns(name, preset):
  workload = workloads.get(name, preset)
  batches = _batches(workload, batch_size=workload.batch_size)
  result = _train(workload, batches, steps=120, epoch_steps=20, rate=0.002)
  losses = [epoch["loss"] for epoch in result.curve]
  assert losses[-1] < 0.6 * losses[0]
  accuracy = _evaluate(workload, result.model)
  assert accuracy > _share_of_the_most_frequent(workload) + 0.4


def _without_looking(model, workload):
  """The metric of whoever says of each image what is true of all on average."""
  batches = list(workload.validation())
  outputs = [model.predict_on_batch(images) for images, _ in batches]
  mean = np.mean(np.concatenate(outputs), axis=0)
  mean[:, 4] = -100  # no background: otherwise it would rather say nothing
  metric = workload.metric()
  for _, labels in batches:
    metric.update_state(labels, np.stack([mean] * len(labels)))
  return metric.result()


@pytest.mark.one_stack
def test_a_small_detector_learns():
  workload = workloads.get("ssd_coco", "small")
  batches = _batches(workload, batch_size=workload.batch_size)
  result = _train(workload, batches, steps=150, epoch_steps=50, rate=0.003)
  losses = [epoch["loss"] for epoch in result.curve]
  assert losses[-1] < 0.75 * losses[0]
  precision = _evaluate(workload, result.model)
  assert precision > _without_looking(result.model, workload) + 0.04


def _examples(name, count):
  rng = np.random.RandomState(0)
  pixels = rng.randint(0, 256, (count, 32, 32, 3)).astype(np.uint8)
  key = {"cifar10": "id", "imagenet2012": "file_name"}[name]
  return [
    {key: str(n), "image": image, "label": n % 10}
    for n, image in enumerate(pixels)
  ]


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
  directory = tmp_path_factory.mktemp("prepared")
  examples = _examples("cifar10", 20)
  prepare("cifar10", directory, train=examples, test=examples[:4])
  examples = _examples("imagenet2012", 20)
  prepare("imagenet2012", directory, train=examples, validation=examples[:4])
  examples = _photographs(20)
  prepare("coco/2017", directory, train=examples, validation=examples[:4])
  return directory


def _photographs(count):
  """Examples of COCO, the first of them without any object."""
  rng = np.random.RandomState(0)
  return [
    {
      "image": rng.randint(0, 256, (40 + n, 60, 3)).astype(np.uint8),
      "image/filename": f"{n}.jpg",
      "image/id": n,
      "objects": [_object(rng, crowd=k == 5) for k in range(n % 8)],
    }
    for n in range(count)
  ]


def _bbox(*corners):
  import tensorflow_datasets as tfds

  return tfds.features.BBox(*corners)


def _object(rng, *, crowd):
  top, left = rng.uniform(0, 0.5, 2)
  height, width = rng.uniform(0.1, 0.5, 2)
  return {
    "id": rng.randint(1_000),
    "area": rng.randint(1_000),
    "bbox": _bbox(top, left, top + height, left + width),
    "label": rng.randint(80),
    "is_crowd": crowd,
  }


@needs_tensorflow_datasets
@pytest.mark.parametrize("name, preset", PAPER)
def test_the_paper_s_trains_from_disk_and_goes_on(
  name, preset, data_dir, monkeypatch, tmp_path
):
  monkeypatch.setenv(prepared.VARIABLE, str(data_dir))
  workload = workloads.get(name, preset)
  assert workload.train_examples == len(workload.train()) == 20
  if preset == "paper_fused" or name == "ssd_coco":
    workload = _with_fewer_layers(workload)
  _check(workload, tmp_path)


# The preset, its weights, the target of the paper on data echoing, how many
# examples the real data have, and the rate at the beginning of some epochs.
RECIPES = [
  (
    *("resnet32_cifar10", "paper", 464_154, 0.91, 50_000),
    {0: 0.1, 81: 0.1, 82: 0.01, 122: 0.01, 123: 0.001, 163: 0.001},
  ),
  (
    *("resnet50_imagenet", "paper", 25_557_032, 0.75, 1_281_167),
    {0: 0.0, 1: 0.02, 5: 0.1, 47.5: 0.05},
  ),
  (
    *("ssd_coco", "paper", 19_972_534, 0.20, 118_287),
    {0: 0, 1: 2.5e-3, 42: 2.5e-3, 43: 2.5e-4, 54: 2.5e-5, 64: 2.5e-5},
  ),
]


@pytest.mark.one_stack
@needs_tensorflow_datasets
@pytest.mark.parametrize(
  "name, preset, weights, target, examples, rates", RECIPES
)
def test_the_recipe_is_that_of_the_paper(
  name, preset, weights, target, examples, rates, data_dir, monkeypatch
):
  monkeypatch.setenv(prepared.VARIABLE, str(data_dir))
  workload = workloads.get(name, preset)
  trainable = workload.model().trainable_weights
  assert sum(int(np.prod(w.shape)) for w in trainable) == weights
  assert target in workload.targets and workload.maximize
  timeline = Timeline(
    batch_size=workload.batch_size, fresh_examples=examples
  ).lasting(workload.length)
  rate = workload.learning_rate.on(timeline)
  assert {
    epoch: pytest.approx(float(rate(timeline.steps(f"{epoch}ep"))), rel=1e-3)
    for epoch in rates
  } == rates
  # Within the time that comparisons allow for, a target can be reached.
  assert workload.max_steps >= 0.9 * timeline.total_steps


def _in_memory(dataset):
  """The mock makes examples in Python, and that can't be taken up again."""
  records = list(dataset)
  stacked = tf.nest.map_structure(lambda *tensors: tf.stack(tensors), *records)
  return tf.data.Dataset.from_tensor_slices(stacked)


@needs_tensorflow_datasets
@pytest.mark.parametrize("name, preset", MOCKED)
def test_the_paper_s_trains_on_mock_data_and_goes_on(name, preset, tmp_path):
  import tensorflow_datasets as tfds

  with tfds.testing.mock_data(num_examples=8):
    workload = _with_fewer_layers(workloads.get(name, preset))
    records = _in_memory(workload.train())
    workload = dataclasses.replace(workload, train=lambda: records)
    _check(workload, tmp_path)


def _mocked(tfds, split):
  """Examples of COCO as the mock makes them, with boxes that are some.

  It draws each list of an object's values in another length, and the corners of
  boxes in any order.
  """
  for record in tfds.as_numpy(tfds.load("coco/2017", split=split)):
    objects = record["objects"]
    count = min(len(values) for values in objects.values())
    corners = objects["bbox"].reshape(-1, 2, 2)
    corners = np.sort(corners, axis=1).reshape(-1, 4).tolist()
    yield {
      **record,
      "objects": [
        {
          **{name: values[n] for name, values in objects.items()},
          "bbox": _bbox(*corners[n]),
        }
        for n in range(count)
      ],
    }


@needs_tensorflow_datasets
def test_the_paper_s_detector_trains_on_mock_data_and_goes_on(
  monkeypatch, tmp_path
):
  """From disk: as encoded files, the mock makes none of this data set."""
  import tensorflow_datasets as tfds

  with tfds.testing.mock_data(num_examples=8):
    examples = list(_mocked(tfds, "train"))
  prepare("coco/2017", tmp_path, train=examples, validation=examples[:4])
  monkeypatch.setenv(prepared.VARIABLE, str(tmp_path))
  _check(_with_fewer_layers(workloads.get("ssd_coco", "paper")), tmp_path)
