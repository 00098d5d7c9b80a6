import numpy as np
import pytest

from experiments.workloads import resnet


@pytest.mark.parametrize(
  # By hand for depth 8, in thousands: 0.2 + 4.7 + 14.5 + 57.6 + 0.7.
  "depth, shape, parameters",
  [(8, (16, 16, 1), 78_154), (20, (32, 32, 3), 272_762)],
)
def test_the_family_has_the_sizes_of_the_paper(depth, shape, parameters):
  model = resnet.cifar_resnet(depth, input_shape=shape, classes=10)
  trainable = sum(int(np.prod(w.shape)) for w in model.trainable_weights)
  assert abs(trainable - parameters) < 0.02 * parameters
  assert model.output_shape == (None, 10)


def test_a_network_of_depth_d_has_d_layers_with_weights_on_its_main_path():
  model = resnet.cifar_resnet(14, input_shape=(16, 16, 1), classes=10)
  kernels = [getattr(layer, "kernel_size", None) for layer in model.layers]
  assert kernels.count((3, 3)) + 1 == 14


@pytest.mark.parametrize("depth", [2, 7, 9, 0, -4])
def test_another_depth_is_refused(depth):
  with pytest.raises(ValueError, match=f"`depth` must be 6n .* got {depth}"):
    resnet.cifar_resnet(depth, input_shape=(16, 16, 1), classes=10)
