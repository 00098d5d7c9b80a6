"""Every kind of layer computes the same in channels_last."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from layouts import (
  FIRST,
  IS_KERAS_2,
  ON_JAX,
  assert_close,
  assert_computes_the_same,
  batches,
  conv2d,
  inserted,
  outputs,
  sequential,
)

from tfecho.training import to_channels_last

layers = keras.layers
RELU = tf.nn.relu if IS_KERAS_2 else keras.ops.relu


# --- Layers with a data format ----------------------------------------------

# layer, shape of its input without the batch
WITH_DATA_FORMAT = {
  "Conv1D": (lambda: layers.Conv1D(2, 3, **FIRST), (3, 6)),
  "Conv1D, strides": (lambda: layers.Conv1D(4, 3, 2, **FIRST), (3, 6)),
  "Conv2D": (lambda: layers.Conv2D(4, 3, **FIRST), (3, 4, 5)),
  "Conv2D, all options": (
    lambda: layers.Conv2D(
      4, (3, 2), padding="same", dilation_rate=(1, 2), groups=2,
      use_bias=False, activation="relu", kernel_regularizer="l2", **FIRST
    ),
    (2, 4, 5),
  ),
  "Conv3D": (lambda: layers.Conv3D(4, 2, 2, **FIRST), (3, 4, 4, 5)),
  "DepthwiseConv1D": (lambda: layers.DepthwiseConv1D(3, **FIRST), (3, 6)),
  "DepthwiseConv2D": (
    lambda: layers.DepthwiseConv2D(3, depth_multiplier=2, **FIRST), (3, 4, 5)
  ),
  "SeparableConv1D": (lambda: layers.SeparableConv1D(2, 3, **FIRST), (3, 6)),
  "SeparableConv2D": (
    lambda: layers.SeparableConv2D(4, 3, **FIRST), (3, 4, 5)
  ),
  "Conv1DTranspose": (
    lambda: layers.Conv1DTranspose(4, 3, strides=2, **FIRST), (3, 4)
  ),
  "Conv2DTranspose": (
    lambda: layers.Conv2DTranspose(4, 3, 2, padding="same", **FIRST),
    (3, 2, 3),
  ),
  "Conv3DTranspose": (
    lambda: layers.Conv3DTranspose(2, 2, strides=2, **FIRST), (3, 2, 2, 3)
  ),
  "MaxPooling1D": (lambda: layers.MaxPooling1D(2, **FIRST), (3, 6)),
  "MaxPooling2D": (
    lambda: layers.MaxPooling2D((2, 3), 1, padding="same", **FIRST), (3, 4, 5)
  ),
  "MaxPooling3D": (lambda: layers.MaxPooling3D(2, **FIRST), (3, 4, 4, 5)),
  "AveragePooling1D": (lambda: layers.AveragePooling1D(2, **FIRST), (3, 6)),
  "AveragePooling2D": (lambda: layers.AveragePooling2D(2, **FIRST), (3, 4, 5)),
  "AveragePooling3D": (
    lambda: layers.AveragePooling3D(2, **FIRST), (3, 4, 4, 5)
  ),
  "GlobalMaxPooling1D": (
    lambda: layers.GlobalMaxPooling1D(**FIRST), (3, 6)
  ),
  "GlobalMaxPooling2D": (lambda: layers.GlobalMaxPooling2D(**FIRST), (3, 4, 5)),
  "GlobalAveragePooling2D, keepdims": (
    lambda: layers.GlobalAveragePooling2D(keepdims=True, **FIRST), (3, 4, 5)
  ),
  "GlobalAveragePooling3D": (
    lambda: layers.GlobalAveragePooling3D(**FIRST), (3, 2, 2, 3)
  ),
  "UpSampling2D": (lambda: layers.UpSampling2D((2, 3), **FIRST), (3, 2, 3)),
  "UpSampling2D, bilinear": (
    lambda: layers.UpSampling2D(2, interpolation="bilinear", **FIRST),
    (3, 2, 3),
  ),
  "UpSampling3D": (lambda: layers.UpSampling3D(2, **FIRST), (3, 2, 2, 3)),
  "ZeroPadding2D": (
    lambda: layers.ZeroPadding2D(((1, 2), (0, 1)), **FIRST), (3, 2, 3)
  ),
  "ZeroPadding3D": (lambda: layers.ZeroPadding3D((1, 2, 0), **FIRST),
                    (3, 2, 2, 3)),
  "Cropping2D": (
    lambda: layers.Cropping2D(((1, 0), (0, 2)), **FIRST), (3, 4, 5)
  ),
  "Cropping3D": (lambda: layers.Cropping3D((1, 0, 1), **FIRST), (3, 4, 4, 5)),
  "SpatialDropout2D": (lambda: layers.SpatialDropout2D(0.5, **FIRST),
                       (3, 4, 5)),
  "SpatialDropout3D": (lambda: layers.SpatialDropout3D(0.5, **FIRST),
                       (3, 2, 2, 3)),
  "Flatten": (lambda: layers.Flatten(**FIRST), (3, 4, 5)),
}


@pytest.mark.parametrize("name", WITH_DATA_FORMAT)
def test_a_layer_with_a_data_format_computes_the_same(name):
  make, shape = WITH_DATA_FORMAT[name]
  model = sequential(shape, make())
  assert_computes_the_same(model)


@pytest.mark.parametrize("name", WITH_DATA_FORMAT)
def test_a_layer_with_a_data_format_keeps_its_name_and_all_else(name):
  make, shape = WITH_DATA_FORMAT[name]
  model = sequential(shape, make())
  new = to_channels_last(model)
  (old_layer,) = model.layers
  new_layer = new.get_layer(old_layer.name)
  old, new = old_layer.get_config(), new_layer.get_config()
  assert {**old, **FIRST} == {**new, **FIRST}
  assert new_layer.data_format == "channels_last"


# --- Layers with axes -------------------------------------------------------


def normalizations():
  """layer, shape of its input, which a convolution makes channels_last"""
  made = {
    "BatchNormalization": (lambda: layers.BatchNormalization(axis=1), (2, 3)),
    "BatchNormalization 3D": (
      lambda: layers.BatchNormalization(axis=1), (2, 3, 2)
    ),
    "LayerNormalization of channels": (
      lambda: layers.LayerNormalization(axis=1), (2, 3)
    ),
    "LayerNormalization of all": (
      lambda: layers.LayerNormalization(axis=[1, 2, 3]), (2, 3)
    ),
    "LayerNormalization of rows and channels": (
      lambda: layers.LayerNormalization(axis=[1, 2]), (2, 3)
    ),
    "LayerNormalization of the last": (
      lambda: layers.LayerNormalization(), (2, 3)
    ),
    "GroupNormalization": (
      lambda: layers.GroupNormalization(2, axis=1), (2, 3)
    ),
    "GroupNormalization of columns": (
      lambda: layers.GroupNormalization(1, axis=-1), (2, 3)
    ),
    "UnitNormalization": (lambda: layers.UnitNormalization(axis=1), (2, 3)),
    "Normalization": (lambda: layers.Normalization(axis=1), (2, 3)),
    "Normalization of all": (lambda: layers.Normalization(axis=None), (2, 3)),
    "Normalization of two axes": (
      lambda: layers.Normalization(axis=(1, 2)), (2, 3)
    ),
    "Normalization by constants": (
      lambda: layers.Normalization(
        axis=1, mean=[1.0, 2.0, 3.0, 4.0], variance=[1.0, 2.0, 3.0, 4.0]
      ),
      (2, 3),
    ),
    "Softmax of channels": (lambda: layers.Softmax(axis=1), (2, 3)),
    "Softmax of positions": (lambda: layers.Softmax(axis=[2, 3]), (2, 3)),
    "PReLU": (lambda: layers.PReLU(), (2, 3)),
    "PReLU, shared": (lambda: layers.PReLU(shared_axes=[2, 3]), (2, 3)),
    "PReLU, shared by channels": (lambda: layers.PReLU(shared_axes=[1]),
                                  (2, 3)),
  }
  if hasattr(layers, "RMSNormalization"):
    # Keras 3.15 takes other axes than the last ones, and can't compute them.
    made["RMSNormalization of all"] = (
      lambda: layers.RMSNormalization(axis=[1, 2, 3]), (2, 3)
    )
    made["RMSNormalization of positions"] = (
      lambda: layers.RMSNormalization(axis=[2, 3]), (2, 3)
    )
  return made


@pytest.mark.parametrize("name", normalizations())
def test_a_layer_with_axes_computes_the_same(name):
  make, positions = normalizations()[name]
  convolution = {2: layers.Conv2D, 3: layers.Conv3D}[len(positions)]
  model = sequential((3, *positions), convolution(4, 1, **FIRST), make())
  assert_computes_the_same(model)


def test_batch_normalization_learns_the_same_statistics():
  model = sequential(
    (3, 4, 5), conv2d(), layers.BatchNormalization(axis=1, momentum=0.5)
  )
  new = to_channels_last(model, keep_input_layout=True)
  images = batches(model, 4)
  for each in (model, new):
    call = each if ON_JAX else tf.function(each)
    call(images, training=True)
  assert_close(new.get_weights(), model.get_weights())


def test_batch_normalization_is_converted_where_nothing_else_is():
  model = sequential((3, 4, 5), layers.BatchNormalization(axis=1))
  assert to_channels_last(model).output_shape == (None, 4, 5, 3)
  assert_computes_the_same(model)


# layers behind a convolution
ELEMENTWISE = {
  "Activation": lambda: layers.Activation("tanh"),
  "Activation along an axis": lambda: layers.Activation("softmax"),
  "Activation by a function": lambda: layers.Activation(RELU),
  "ReLU": lambda: layers.ReLU(max_value=1.0),
  "LeakyReLU": lambda: layers.LeakyReLU(),
  "ELU": lambda: layers.ELU(),
  "Dropout": lambda: layers.Dropout(0.5),
  "Dropout of channels": lambda: layers.Dropout(0.5, (None, 4, 1, 1)),
  "GaussianNoise": lambda: layers.GaussianNoise(1.0),
  "GaussianDropout": lambda: layers.GaussianDropout(0.5),
  "AlphaDropout": lambda: layers.AlphaDropout(0.5),
  "Identity": lambda: layers.Identity(),
  "ActivityRegularization": lambda: layers.ActivityRegularization(0.1),
  "Rescaling": lambda: layers.Rescaling(0.5, 1.0),
  "Rescaling of columns": lambda: layers.Rescaling([0.5, 1.0, 2.0]),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_an_elementwise_layer_computes_the_same(name):
  model = sequential((3, 2, 3), conv2d(4), ELEMENTWISE[name]())
  assert_computes_the_same(model)


@pytest.mark.parametrize(
  "name", sorted(name for name in ELEMENTWISE if " of col" not in name
                 and "along" not in name)
)
def test_nothing_is_transposed_around_an_elementwise_layer(name):
  model = sequential((3, 2, 3), conv2d(4), ELEMENTWISE[name](), conv2d(2))
  assert inserted(model, to_channels_last(model)) == []


def test_dropout_of_channels_drops_whole_channels():
  model = sequential((4, 2, 3), conv2d(4), layers.Dropout(0.5, (None, 4, 1, 1)))
  noise = to_channels_last(model).layers[-1].noise_shape
  assert tuple(noise) == (None, 1, 1, 4)


# --- Reshaping --------------------------------------------------------------


# layers between a convolution and the output
RESHAPING = {
  "Flatten": lambda: [layers.Flatten()],
  "Flatten, Dense": lambda: [layers.Flatten(), layers.Dense(3)],
  "Flatten in channels_first, Dense": lambda: [
    layers.Flatten(**FIRST), layers.Dense(3)
  ],
  "Reshape to a vector, Dense": lambda: [
    layers.Reshape((-1,)), layers.Dense(24, activation="softmax")
  ],
  "Flatten, elementwise, Dense": lambda: [
    layers.Flatten(), layers.Dropout(0.1), layers.ReLU(), layers.Dense(3)
  ],
  "Flatten, BatchNormalization, Dense": lambda: [
    layers.Flatten(), layers.BatchNormalization(), layers.Dense(3)
  ],
  "Flatten, LayerNormalization, PReLU, Dense": lambda: [
    layers.Flatten(), layers.LayerNormalization(), layers.PReLU(),
    layers.Dense(3),
  ],
  "Flatten, GroupNormalization, Dense": lambda: [
    layers.Flatten(), layers.GroupNormalization(2), layers.Dense(3)
  ],
  "Flatten, Reshape, convolution": lambda: [
    layers.Flatten(), layers.Reshape((4, 2, 3)), conv2d()
  ],
  "Reshape of positions": lambda: [
    layers.Reshape((4, 6)), layers.Conv1D(2, 3, **FIRST)
  ],
  "Reshape of everything": lambda: [
    layers.Reshape((2, 12)), layers.Conv1D(2, 3, **FIRST)
  ],
  "Reshape to a sequence, LSTM": lambda: [
    layers.Reshape((4, -1)), layers.LSTM(2)
  ],
  "Permute to channels_last": lambda: [
    layers.Permute((2, 3, 1)), layers.Conv2D(2, 2)
  ],
  "Permute of positions": lambda: [layers.Permute((1, 3, 2)), conv2d(3)],
  "Dense on the columns": lambda: [layers.Dense(2)],
  "a layer in channels_last": lambda: [layers.Conv2D(2, 1)],
  "Cropping1D along the channels": lambda: [
    layers.Reshape((4, 6)), layers.Cropping1D(1)
  ],
}


@pytest.mark.parametrize("name", RESHAPING)
def test_reshaping_computes_the_same(name):
  model = sequential((3, 2, 3), conv2d(4), *RESHAPING[name]())
  gives_images = name not in {
    "Permute to channels_last", "a layer in channels_last",
    "Cropping1D along the channels",
  }
  assert_computes_the_same(model, gives_images=gives_images)


# what, and the layers that have to be added
@pytest.mark.parametrize(
  "name",
  [
    "Flatten, Dense",
    "Flatten in channels_first, Dense",
    "Reshape to a vector, Dense",
    "Flatten, elementwise, Dense",
    "Flatten, BatchNormalization, Dense",
    "Flatten, LayerNormalization, PReLU, Dense",
    "Reshape of positions",
    "Permute to channels_last",
  ],
)
def test_weights_are_permuted_instead_of_images(name):
  model = sequential((3, 2, 3), conv2d(4), *RESHAPING[name]())
  assert inserted(model, to_channels_last(model)) == []


def test_images_of_unknown_size_are_flattened_in_the_old_order():
  model = sequential(
    (3, None, None), conv2d(4), layers.Flatten(), layers.Reshape((24, 1))
  )
  images = np.random.RandomState(0).randn(2, 3, 2, 3).astype("float32")
  new = to_channels_last(model)
  assert_close(
    outputs(new, np.moveaxis(images, 1, -1)), outputs(model, images)
  )


def test_a_model_that_takes_channels_last_and_permutes_keeps_its_input():
  model = sequential((4, 5, 3), layers.Permute((3, 1, 2)), conv2d())
  new = to_channels_last(model)
  assert new.input_shape == (None, 4, 5, 3)
  assert new.output_shape == (None, 4, 5, 2)
  images = batches(model)
  assert_close(
    np.moveaxis(outputs(new, images), -1, 1), outputs(model, images)
  )
