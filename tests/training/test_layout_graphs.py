"""Models of every shape compute the same in channels_last."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from layouts import (
  FIRST,
  IS_KERAS_2,
  ChannelShift,
  Doubling,
  assert_close,
  assert_computes_the_same,
  batches,
  conv2d,
  functional,
  inserted,
  outputs,
  sequential,
)

from tfecho.training import to_channels_last
from tfecho.training.layers import all_layers

layers = keras.layers


# --- Graphs -----------------------------------------------------------------


def residual():
  image = keras.Input((3, 4, 5))
  x = conv2d(4)(image)
  y = layers.BatchNormalization(axis=1)(conv2d(4, use_bias=False)(x))
  x = layers.Add()([layers.Activation("relu")(y), x])
  return image, layers.GlobalAveragePooling2D(**FIRST)(x)


def inception():
  image = keras.Input((3, 4, 5))
  x = layers.Concatenate(axis=1)([conv2d(2)(image), image, conv2d(1)(image)])
  x = layers.Average()([x, layers.Maximum()([x, conv2d(6)(x)])])
  return image, layers.Dense(2)(layers.Flatten()(x))


def squeeze_and_excitation():
  image = keras.Input((3, 4, 5))
  x = conv2d(4)(image)
  squeezed = layers.GlobalAveragePooling2D(**FIRST)(x)
  weights = layers.Dense(4, activation="sigmoid")(squeezed)
  return image, layers.Multiply()([x, layers.Reshape((4, 1, 1))(weights)])


def shared():
  first, second = keras.Input((3, 4, 5)), keras.Input((3, 4, 5))
  convolution, relu = conv2d(4), layers.ReLU()
  x, y = relu(convolution(first)), relu(convolution(second))
  vector = relu(layers.Dense(2)(layers.Flatten()(layers.Subtract()([x, y]))))
  return [first, second], [vector, relu(conv2d(4)(x))]


def shared_dense():
  image, vector = keras.Input((2, 2, 3)), keras.Input((12,))
  dense = layers.Dense(3)
  flat = layers.Flatten()(conv2d(2)(image))
  tall = layers.Reshape((2, 6, 1))(conv2d(2)(image))
  return [image, vector], [
    dense(flat), dense(vector), dense(layers.Flatten()(conv2d(2)(tall)))
  ]


def dictionaries():
  image = keras.Input((3, 4, 5), name="image")
  vector = keras.Input((2,), name="vector")
  x = layers.Flatten()(conv2d(2)(image))
  label = layers.Dense(3)(layers.Concatenate()([x, vector]))
  return {"vector": vector, "image": image}, {"map": conv2d()(image),
                                              "label": label}


def two_flattened():
  image = keras.Input((3, 2, 3))
  first, second = (layers.Flatten()(conv2d(2)(image)) for _ in range(2))
  return image, layers.Dense(2)(layers.Add()([first, second]))


def operators():
  image = keras.Input((3, 4, 5))
  x = conv2d(4)(image / 2.0)
  x = x + conv2d(4)(x) * 2.0
  relu = tf.nn.relu if IS_KERAS_2 else keras.ops.relu
  mean = tf.reduce_mean if IS_KERAS_2 else keras.ops.mean
  return image, [mean(relu(x), axis=[2, 3]), x[:, 1:3]]


def operators_with_constants():
  image = keras.Input((3, 2, 3))
  x = conv2d(4)(image)
  return image, x * np.arange(4.0, dtype="float32").reshape(4, 1, 1)


@pytest.mark.parametrize(
  "make",
  [
    residual, inception, squeeze_and_excitation, shared, shared_dense,
    dictionaries, two_flattened,
  ],
)
def test_a_graph_computes_the_same(make):
  assert_computes_the_same(functional(*make()))


@pytest.mark.parametrize("make", [operators, operators_with_constants])
def test_operators_compute_the_same(make):
  assert_computes_the_same(functional(*make()), gives_images=False)


@pytest.mark.parametrize("make", [residual, inception, shared, two_flattened])
def test_images_are_never_transposed_inside(make):
  model = functional(*make())
  assert inserted(model, to_channels_last(model)) == []


def test_an_image_is_transposed_once_however_many_layers_take_it():
  model = functional(*inception())
  new = to_channels_last(model, keep_input_layout=True)
  assert len(inserted(model, new)) == 1


def test_shared_layers_stay_shared():
  model = functional(*shared())
  names = [layer.name for layer in to_channels_last(model).layers]
  assert sorted(names) == sorted(layer.name for layer in model.layers)


# --- Nested models ----------------------------------------------------------


def nested():
  image = keras.Input((3, 4, 5))
  scale = keras.Sequential([keras.Input((3, 4, 5)), layers.Rescaling(0.5)])
  backbone = keras.Sequential(
    [keras.Input((3, 4, 5)), conv2d(4), layers.BatchNormalization(axis=1)]
  )
  head = keras.Sequential([keras.Input((80,)), layers.Dense(2)])
  x = backbone(scale(image))
  return image, [head(layers.Flatten()(x)), x]


def nested_and_shared():
  first, second = keras.Input((3, 4, 5)), keras.Input((3, 4, 5))
  inside = keras.Input((3, 4, 5))
  flat = layers.Flatten()(conv2d(2)(inside))
  tower = keras.Model(inside, [conv2d(1)(inside), flat])
  (x, flat), (y, other) = tower(first), tower(second)
  distance = layers.Dense(2)(layers.Subtract()([flat, other]))
  return [first, second], [distance, layers.Add()([x, y])]


def nested_twice():
  image = keras.Input((3, 4, 5))
  inner = keras.Sequential([keras.Input((3, 4, 5)), conv2d(2)])
  outer = keras.Sequential([keras.Input((3, 4, 5)), inner, conv2d(1)])
  return image, outer(image)


@pytest.mark.parametrize("make", [nested, nested_and_shared, nested_twice])
def test_nested_models_compute_the_same(make):
  assert_computes_the_same(functional(*make()))


@pytest.mark.parametrize("make", [nested_and_shared, nested_twice])
def test_images_stay_in_channels_last_across_nested_models(make):
  model = functional(*make())
  new = to_channels_last(model)
  assert inserted(model, new) == []
  kinds = {type(layer) for layer in all_layers(new)}
  assert layers.Permute not in kinds


def test_a_nested_model_stays_nested_under_its_name():
  image = keras.Input((3, 4, 5))
  inside = keras.Sequential([keras.Input((3, 4, 5)), conv2d()], name="inside")
  new = to_channels_last(functional(image, inside(image), name="outside"))
  assert new.name == "outside"
  assert isinstance(new.get_layer("inside"), keras.Model)


# --- Layers of one's own ----------------------------------------------------


def test_a_users_layer_with_a_data_format_is_converted():
  model = sequential((3, 4, 5), ChannelShift(), conv2d(4), ChannelShift())
  assert_computes_the_same(model)
  assert inserted(model, to_channels_last(model)) == []


def test_a_users_layer_that_comes_after_the_images_is_left_alone():
  model = sequential((3, 4, 5), conv2d(), layers.Flatten(), Doubling())
  assert_computes_the_same(model)


@pytest.mark.skipif(
  not hasattr(layers, "SpectralNormalization"), reason="no such layer"
)
def test_a_normalized_convolution_is_converted():
  model = sequential((3, 4, 5), layers.SpectralNormalization(conv2d(4)))
  new = to_channels_last(model, keep_input_layout=True)
  images = batches(model)
  for each in (model, new):  # a call in training normalizes the kernel
    each(images, training=True)
  assert_close(outputs(new, images), outputs(model, images))
  assert_close(new.get_weights(), model.get_weights())
