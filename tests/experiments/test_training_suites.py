"""The networks that the suites `precision` and `layout` time, made small."""

import keras
import numpy as np
import pytest

from experiments.benchmark import fused, layout, precision, training
from experiments.workloads import resnet
from tfecho.training import check_layout, train

SHAPE = (8, 8, 3)


@pytest.fixture(autouse=True)
def small_network(monkeypatch):
  """ResNet-8 on images of 8x8 instead of ResNet-32 on images of 32x32."""
  keras.utils.set_random_seed(0)
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
@pytest.mark.parametrize(
  "change", [lambda model: model, fused.with_fused_normalization]
)
def test_a_network_has_the_precision_of_its_contender(
  name, change, monkeypatch
):
  models = []
  monkeypatch.setattr(training, "step_of", models.append)
  precision._step(name, change)
  [model] = models
  assert model.dtype_policy.name == name
  assert keras.mixed_precision.global_policy().name == "float32"


def test_normalization_in_one_op_computes_what_keras_computes():
  model = training.resnet32()
  in_one_op = fused.with_fused_normalization(model)
  names = [[x.name for x in each.layers[1:]] for each in (model, in_one_op)]
  assert names[0] == names[1]
  in_one_op.set_weights(model.get_weights())
  images = np.random.RandomState(0).randn(4, *SHAPE).astype("float32")
  for is_training in (False, True):  # in training, statistics change
    np.testing.assert_allclose(
      in_one_op(images, training=is_training),
      model(images, training=is_training),
      rtol=1e-3,
      atol=1e-4,
    )


@pytest.mark.skipif(
  keras.__version__.startswith("2."), reason="Keras 2 does so by itself"
)
def test_normalization_in_one_op_learns_the_same_statistics():
  plain = keras.layers.BatchNormalization(momentum=0.5)
  in_one_op = fused.FusedBatchNormalization(momentum=0.5)
  images = np.random.RandomState(0).randn(2, 3, 4, 5).astype("float32")
  outputs = [layer(images, training=True) for layer in (plain, in_one_op)]
  np.testing.assert_allclose(*outputs, rtol=1e-4, atol=1e-5)
  *_, mean, variance = plain.get_weights()
  pixels = 2 * 3 * 4
  variance = 0.5 + (variance - 0.5) * pixels / (pixels - 1)
  *_, new_mean, new_variance = in_one_op.get_weights()
  np.testing.assert_allclose(new_mean, mean, rtol=1e-4, atol=1e-6)
  np.testing.assert_allclose(new_variance, variance, rtol=1e-4)


@pytest.mark.skipif(
  keras.__version__.startswith("2."), reason="Keras 2 does so by itself"
)
def test_normalization_in_one_op_refuses_channels_first():
  layer = fused.FusedBatchNormalization(axis=1, name="first")
  with pytest.raises(ValueError, match="'first'.*channels_last only"):
    layer(np.zeros((2, 3, 4, 5), "float32"))


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
    [bound] = precision.cases()[1].bounds
    assert (bound.at_most is not None) is known


@pytest.mark.one_stack
def test_both_precisions_are_trained_from_the_same_seeds(monkeypatch):
  seeds = {"float32": [], "mixed_bfloat16": []}

  def noting(build_model, data, **options):
    seeds[options["precision"]].append(options["seed"])
    return train(build_model, data, **options)

  monkeypatch.setattr(precision, "train", noting)
  monkeypatch.setattr(precision, "DIGITS_STEPS", 2)
  probes = [precision._accuracy(name) for name in seeds]
  shares = [probe() for _ in range(2) for probe in probes]
  assert all(0 < share < 1 for share in shares)
  assert seeds == {"float32": [0, 1], "mixed_bfloat16": [0, 1]}
