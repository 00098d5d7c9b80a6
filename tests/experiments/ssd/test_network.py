import keras
import numpy as np
import pytest

from experiments.workloads.ssd import network
from experiments.workloads.ssd.boxes import SSD300, Level, default_boxes
from tfecho.training import check_layout
from tfecho.training.precision import policy_scope

CLASSES = 80
LEVELS = (Level(8, 8, 12, 24, (2,)), Level(4, 16, 24, 40, (2, 3)))


def _tiny(classes=3):
  keras.utils.set_random_seed(0)
  return network.detector(
    64,
    LEVELS,
    classes=classes,
    blocks=(1, 1, 1),
    width=4,
    extras=[network.Extra(4, 8, 2)],
  )


def _trainable(layers):
  weights = [w for layer in layers for w in layer.trainable_weights]
  return sum(int(np.prod(w.shape)) for w in weights)


def _convolution(size, inputs, outputs):
  return size**2 * inputs * outputs + outputs


def test_ssd300_has_the_outputs_and_the_size_of_the_benchmark():
  model = network.detector(300, SSD300, classes=CLASSES)
  assert model.output_shape == (None, 8_732, 4 + 81)
  # ResNet-34 without its last stage and its classifier.
  trunk = 21_797_672 - 13_114_368 - 513_000
  channels = [256, 512, 512, 256, 256, 256]
  inner = [256, 256, 128, 128, 128]
  extras = sum(
    _convolution(1, channels[n], inner[n])
    + _convolution(3, inner[n], channels[n + 1])
    for n in range(5)
  )
  boxes = [4, 6, 6, 6, 4, 4]
  heads = sum(
    _convolution(3, width, count * 4) + _convolution(3, width, count * 81)
    for width, count in zip(channels, boxes)
  )
  assert _trainable(model.layers) == trunk + extras + heads
  check_layout(model)


def test_outputs_are_in_the_order_of_the_default_boxes():
  model = _tiny()
  rng = np.random.RandomState(0)
  image = rng.randint(0, 256, (64, 64, 3)).astype(np.uint8)
  defaults = default_boxes(64, LEVELS)
  centers = 64 * (defaults[:, :2] + defaults[:, 2:]) / 2
  for spot in ([8, 8], [8, 56], [56, 8]):
    other = image.copy()
    other[spot[0] - 4 : spot[0] + 4, spot[1] - 4 : spot[1] + 4] ^= 255
    before, after = model.predict_on_batch(np.stack([image, other]))
    change = np.abs(after - before).sum(axis=1)
    for level in (slice(0, 256), slice(256, None)):
      mean = np.average(centers[level], axis=0, weights=change[level])
      assert np.all((mean < 32) == (np.array(spot) < 32))


def test_shapes_at_a_position_have_outputs_side_by_side():
  model = _tiny(classes=5)
  for layer in model.layers:
    if isinstance(layer, keras.layers.Conv2D) and layer.use_bias:
      kernel, bias = layer.get_weights()
      layer.set_weights([0 * kernel, np.arange(len(bias), dtype=np.float32)])
  outputs = model.predict_on_batch(np.zeros([1, 64, 64, 3], np.uint8))[0]
  for start, positions, shapes in ((0, 64, 4), (256, 16, 6)):
    here = outputs[start : start + positions * shapes]
    offsets = np.arange(4 * shapes).reshape(shapes, 4)
    logits = np.arange(6 * shapes).reshape(shapes, 6)
    expected = np.concatenate([offsets, logits], axis=1)
    np.testing.assert_array_equal(here, np.tile(expected, [positions, 1]))


def test_outputs_are_float32_in_mixed_precision_too():
  with policy_scope("mixed_bfloat16"):
    model = _tiny()
  outputs = model.predict_on_batch(np.zeros([1, 64, 64, 3], np.uint8))
  assert outputs.dtype == np.float32
  assert outputs.shape == (1, len(default_boxes(64, LEVELS)), 8)


@pytest.mark.parametrize("levels", [LEVELS[:1], (*LEVELS, LEVELS[1]), SSD300])
def test_levels_that_the_network_does_not_have_are_refused(levels):
  with pytest.raises(ValueError, match=r"`levels` .* \[8, 4\] .* got \["):
    network.detector(
      64, levels, classes=3, width=4, extras=[network.Extra(4, 8, 2)]
    )
