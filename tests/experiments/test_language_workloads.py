"""The language models of the paper from their data to a resumed training."""

import dataclasses
import math

import keras
import pytest
import tensorflow as tf
from prepared_data import prepare

from experiments import feeding
from experiments.data import prepared
from experiments.workloads import transformer_common_crawl, transformer_lm1b
from tfecho.training import BackupAndRestore, train

pytest.importorskip("tensorflow_datasets", reason="needs tensorflow-datasets")

STEPS = 4
# The same code as at full size, which takes a GPU.
SIZES = {
  "vocabulary": 24,
  "sequence_length": 12,
  "batch_size": 2,
  "sizes": {"layers": 1, "width": 8, "heads": 2, "feed_forward": 16},
}
# module, name of its data set, and of the split that it is validated on
PAPERS = [
  (transformer_lm1b, "lm1b", "test"),
  (transformer_common_crawl, "c4/en", "validation"),
]


class Interrupt(keras.callbacks.Callback):
  """Ends a training as Ctrl-C would, in the step after so many."""

  def __init__(self, after):
    super().__init__()
    self._after = after
    self.made = 0

  def on_train_batch_end(self, batch, logs=None):
    self.made += 1
    if self.made > self._after:
      raise KeyboardInterrupt


def _train(workload, directory, interrupt):
  pipeline = feeding.plain_pipeline(
    workload, batch_size=workload.batch_size, shuffle_buffer=8, seed=1
  )
  batches = pipeline.dataset(
    echo_after="decode",
    factor=2,
    echo_buffer=4,
    repeat=True,
    implementation="graph",
  )
  backup = BackupAndRestore(directory, data=batches, every_steps=1)
  return train(
    workload.model,
    backup.data,
    length=f"{STEPS}ba",
    epoch=f"{STEPS}ba",
    optimizer=workload.optimizer,
    learning_rate=0.01,
    loss=workload.loss(),
    callbacks=[interrupt, backup],
    seed=1,
    verbose=0,
    jit_compile=False,
  )


def _check(workload, directory):
  """It trains, is interrupted, goes on where it was, and is evaluated."""
  with pytest.raises(KeyboardInterrupt):
    _train(workload, directory, Interrupt(after=2))
  rest = Interrupt(after=STEPS)
  result = _train(workload, directory, rest)
  assert (rest.made, result.steps) == (STEPS - 2, STEPS)
  metric = workload.metric()
  for inputs, labels in workload.validation():
    metric.update_state(labels, result.model.predict_on_batch(inputs))
  uniform = math.log(SIZES["vocabulary"])
  assert 0.3 * uniform < float(metric.result()) < 1.5 * uniform


def _pages(name, count):
  import tensorflow_datasets as tfds

  features = tfds.builder(name, data_dir=prepared.directory()).info.features
  words = ["a", "cat", "and", "the", "dog", "sat"]
  return [
    {
      **dict.fromkeys(features, ""),
      "text": " ".join(words[n % 6 :] + words[: n % 5]),
    }
    for n in range(count)
  ]


@pytest.mark.parametrize("module, name, split", PAPERS)
def test_the_paper_s_trains_from_disk_and_goes_on(
  module, name, split, tmp_path, monkeypatch
):
  monkeypatch.setenv(prepared.VARIABLE, str(tmp_path / "data"))
  pages = _pages(name, 20)
  prepare(name, tmp_path / "data", **{"train": pages, split: pages[:4]})
  workload = module.paper(**SIZES)
  assert workload.train_examples == len(workload.train()) == 20
  _check(workload, tmp_path / "backup")
  files = (tmp_path / "data" / "vocabularies").iterdir()
  assert [file.name for file in files] == [
    f"{name.replace('/', '-')}-{SIZES['vocabulary']}.model"
  ]


def _in_memory(dataset):
  """The mock makes examples in Python, and that can't be taken up again."""
  records = list(dataset)
  stacked = tf.nest.map_structure(lambda *tensors: tf.stack(tensors), *records)
  return tf.data.Dataset.from_tensor_slices(stacked)


@pytest.mark.parametrize("module, name, split", PAPERS)
def test_the_paper_s_trains_on_mock_data_and_goes_on(
  module, name, split, tmp_path, monkeypatch
):
  import tensorflow_datasets as tfds

  monkeypatch.setenv(prepared.VARIABLE, str(tmp_path / "data"))
  with tfds.testing.mock_data(num_examples=8):
    workload = module.paper(**SIZES)
    records = _in_memory(workload.train())
    workload = dataclasses.replace(workload, train=lambda: records)
    _check(workload, tmp_path / "backup")


@pytest.mark.parametrize("module, name, split", PAPERS)
def test_without_the_data_the_error_says_how_to_prepare_them(
  module, name, split, tmp_path, monkeypatch
):
  monkeypatch.setenv(prepared.VARIABLE, str(tmp_path))
  command = f"`tfds build {name} --data_dir={tmp_path}`"
  with pytest.raises(ValueError, match=f"{name} is not on .* {command}"):
    module.PRESETS["paper"]()


@pytest.mark.parametrize("module, name, split", PAPERS)
def test_the_full_size_is_the_base_transformer_of_32_thousand_tokens(
  module, name, split, tmp_path, monkeypatch
):
  monkeypatch.setenv(prepared.VARIABLE, str(tmp_path))
  pages = _pages(name, 5)
  prepare(name, tmp_path, **{"train": pages, split: pages})
  workload = module.paper()
  model = workload.model()
  assert model.count_params() == 35_287_040
  length = {"lm1b": 128, "c4/en": 256}[name]
  assert model.output_shape == (None, length, 32_000)
  assert workload.targets[-1] == 3.9 and not workload.maximize
