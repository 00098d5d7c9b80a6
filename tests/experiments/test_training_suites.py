"""The networks that the suites `precision` and `layout` time, made small."""

import keras
import numpy as np
import pytest

from experiments.benchmark import layout, precision, training
from experiments.workloads import resnet
from tfecho.training import check_layout

SHAPE = (8, 8, 3)


@pytest.fixture(autouse=True)
def small_network(monkeypatch):
  """ResNet-8 on images of 8x8 instead of ResNet-32 on images of 32x32."""
  monkeypatch.setattr(training, "IMAGE_SHAPE", SHAPE)
  monkeypatch.setattr(training, "BATCH_SIZE", 4)
  monkeypatch.setattr(
    training, "resnet32",
    lambda: resnet.cifar_resnet(8, input_shape=SHAPE, classes=10),
  )


def test_the_networks_of_the_layout_suite_are_the_same_in_two_layouts():
  first = layout._channels_first()
  assert first.input_shape == (None, 3, 8, 8)
  with pytest.raises(ValueError, match="conv2d"):
    check_layout(first)
  converted = layout._converted()
  assert converted.input_shape == (None, *SHAPE)
  built = training.resnet32()
  assert converted.count_params() == first.count_params()
  assert converted.count_params() == built.count_params()


def test_a_probe_trains_the_model():
  model = training.resnet32()
  before = model.get_weights()
  training.step_of(model, steps=1)()
  after = model.get_weights()
  assert all(np.any(a != b) for a, b in zip(after, before))


@pytest.mark.parametrize("name", ["float32", "mixed_bfloat16"])
def test_a_network_has_the_precision_of_its_contender(name, monkeypatch):
  models = []
  monkeypatch.setattr(training, "step_of", models.append)
  precision._step(name)
  [model] = models
  assert model.dtype_policy.name == name
  assert keras.mixed_precision.global_policy().name == "float32"


# what Linux says of a processor, whether it multiplies bfloat16
@pytest.mark.parametrize(
  ("flags", "expected"),
  [
    ("fpu avx512f avx512_bf16 avx512_vnni", True),
    ("fpu amx_tile amx_bf16", True),
    ("fpu avx512f avx512_vnni", False),
    ("", False),
  ],
)
def test_processors_that_multiply_bfloat16_are_known(
  flags, expected, tmp_path
):
  cpuinfo = tmp_path / "cpuinfo"
  cpuinfo.write_text(f"model name\t: some\nflags\t\t: {flags}\n")
  assert precision.multiplies_bfloat16(cpuinfo) is expected


def test_nothing_is_known_where_linux_does_not_tell(tmp_path):
  assert not precision.multiplies_bfloat16(tmp_path / "none")


def test_the_time_is_bounded_only_where_bfloat16_is_multiplied(monkeypatch):
  for known in (True, False):
    monkeypatch.setattr(precision, "multiplies_bfloat16", lambda k=known: k)
    [bound] = precision.cases()[0].bounds
    assert (bound.at_most is not None) is known


def test_both_precisions_are_trained_from_the_same_seeds(monkeypatch):
  seeds = {"float32": [], "mixed_bfloat16": []}

  class Untrained:
    """Stands for a trainer; notes the seeds, and is right in two thirds."""

    def __init__(self, workload):
      del workload
      self.precision = keras.mixed_precision.global_policy().name

    def reset(self, seed):
      seeds[self.precision].append(seed)

    def train(self, images, labels, learning_rate):
      assert 0 < learning_rate <= precision.DIGITS_LEARNING_RATE
      assert len(images) == len(labels) == 32

    def evaluate(self):
      return 2 / 3

  monkeypatch.setattr(precision, "Trainer", Untrained)
  monkeypatch.setattr(precision, "DIGITS_STEPS", 2)
  probes = [precision._accuracy(name) for name in seeds]
  assert [probe() for _ in range(3) for probe in probes] == [2 / 3] * 6
  assert seeds == {"float32": [0, 1, 2], "mixed_bfloat16": [0, 1, 2]}
