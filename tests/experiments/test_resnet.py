import keras
import numpy as np
import pytest
import tensorflow as tf

from experiments.workloads import resnet


def _trainable(model):
  return sum(int(np.prod(w.shape)) for w in model.trainable_weights)


class TestSmallImages:
  @pytest.mark.parametrize(
    "depth, shape, shortcuts, parameters",
    [
      # By hand for depth 8, in thousands: 0.2 + 4.7 + 14.5 + 57.6 + 0.7.
      (8, (16, 16, 1), "projection", 77_754),
      # The paper has 0.27, 0.46 and 0.85 million, without projections.
      (20, (32, 32, 3), "padding", 269_722),
      (32, (32, 32, 3), "padding", 464_154),
      (56, (32, 32, 3), "padding", 853_018),
    ],
  )
  def test_the_family_has_the_sizes_of_the_paper(
    self, depth, shape, shortcuts, parameters
  ):
    model = resnet.cifar_resnet(
      depth, input_shape=shape, classes=10, shortcuts=shortcuts
    )
    assert _trainable(model) == parameters
    assert model.output_shape == (None, 10)

  def test_a_network_of_depth_d_has_d_layers_with_weights(self):
    model = resnet.cifar_resnet(
      14, input_shape=(16, 16, 1), classes=10, shortcuts="padding"
    )
    layers = [layer for layer in model.layers if hasattr(layer, "kernel")]
    assert len(layers) == 14

  def test_a_padded_shortcut_is_the_input_beside_zeros(self):
    x = np.arange(32, dtype=np.float32).reshape(1, 4, 4, 2)
    padded = resnet.pad_channels(tf.constant(x), stride=2)
    np.testing.assert_array_equal(padded[..., :2], x[:, ::2, ::2])
    np.testing.assert_array_equal(padded[..., 2:], np.zeros([1, 2, 2, 2]))

  @pytest.mark.parametrize("depth", [2, 7, 9, 0, -4])
  def test_another_depth_is_refused(self, depth):
    with pytest.raises(ValueError, match=f"`depth` must be 6n .* got {depth}"):
      resnet.cifar_resnet(depth, input_shape=(16, 16, 1), classes=10)

  def test_other_shortcuts_are_refused(self):
    with pytest.raises(ValueError, match="`shortcuts` .* got 'none'"):
      resnet.cifar_resnet(
        8, input_shape=(16, 16, 1), classes=10, shortcuts="none"
      )


class TestPatches:
  def test_a_position_is_a_patch_seen_at_every_so_many_pixels(self):
    # Of one in 65,000 networks all channels are blind to what is bright.
    keras.utils.set_random_seed(0)
    model = resnet.patch_resnet(
      8, patch_size=20, pixel_stride=5, input_shape=(160, 160, 3), classes=10
    )
    # 4 x 4 pixels of a patch, in three channels, make sixteen.
    inner = resnet.cifar_resnet(8, input_shape=(8, 8, 16), classes=10)
    assert _trainable(model) == 4 * 4 * 3 * 16 + _trainable(inner)
    image = np.zeros((1, 160, 160, 3), np.uint8)
    seen, unseen = image.copy(), image.copy()
    seen[:, 5, 10], unseen[:, 6, 10] = 255, 255
    plain = model(image, training=False).numpy()
    np.testing.assert_array_equal(model(unseen, training=False), plain)
    assert np.any(model(seen, training=False).numpy() != plain)


class TestBottlenecks:
  def test_resnet50_has_the_size_of_the_paper(self):
    model = resnet.bottleneck_resnet(
      (3, 4, 6, 3), input_shape=(224, 224, 3), classes=1_000
    )
    # That of keras.applications without the biases of its convolutions.
    assert _trainable(model) == 25_583_592 - 26_560
    assert model.output_shape == (None, 1_000)
    assert len([x for x in model.layers if hasattr(x, "kernel")]) == 50 + 4

  def test_each_stage_halves_the_image_and_doubles_the_channels(self):
    model = resnet.bottleneck_resnet(
      (1, 2, 1), width=3, input_shape=(64, 96, 1), classes=5
    )
    sums = [x.output for x in model.layers if "add" in x.name]
    assert [tuple(x.shape[1:]) for x in sums] == [
      (16, 24, 12),
      (8, 12, 24),
      (8, 12, 24),
      (4, 6, 48),
    ]

  def test_every_block_begins_as_its_shortcut(self):
    one, two = (
      resnet.bottleneck_resnet(
        blocks, width=2, input_shape=(32, 32, 3), classes=4
      )
      for blocks in ((1,), (2,))
    )
    two.set_weights(_first_and_last(one, two))
    images = np.random.RandomState(0).randint(0, 256, (2, 32, 32, 3))
    images = images.astype(np.uint8)
    np.testing.assert_allclose(one(images), two(images), atol=1e-6)


def _first_and_last(one, two):
  """Weights of `one` for `two`, which has a block more in front of the last."""
  weights, others = one.get_weights(), two.get_weights()
  return [*weights[:-2], *others[len(weights) - 2 : -2], *weights[-2:]]
