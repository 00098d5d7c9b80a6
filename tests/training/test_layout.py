"""A converted model computes the same, in channels_last from end to end."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfecho.training import check_layout, to_channels_last
from tfecho.training.layers import all_layers

layers = keras.layers
FIRST = {"data_format": "channels_first"}
IS_KERAS_2 = keras.__version__.startswith("2.")


@pytest.fixture(autouse=True)
def defaults():
  yield
  keras.mixed_precision.set_global_policy("float32")
  keras.backend.set_image_data_format("channels_last")


# --- What is compared -------------------------------------------------------


def conv2d(filters=2, **options):
  return layers.Conv2D(filters, 3, padding="same", **FIRST, **options)


def sequential(shape, *stack):
  model = keras.Sequential([keras.Input(shape), *stack])
  randomize(model)
  return model


def functional(inputs, outputs, **options):
  model = keras.Model(inputs, outputs, **options)
  randomize(model)
  return model


def randomize(model):
  """Makes every weight count: no zeros, no ones, no two alike."""
  draw = np.random.RandomState(1)
  model.set_weights(
    [draw.uniform(0.5, 1.5, w.shape).astype(w.dtype)
     for w in model.get_weights()]
  )
  for layer in all_layers(model):
    if isinstance(layer, layers.Normalization):
      layer.finalize_state()


def batches(model, size=2):
  """A batch for each input, as a structure that `model` takes."""
  draw = np.random.RandomState(2)
  is_sequential = isinstance(model, keras.Sequential)
  return tf.nest.map_structure(
    lambda x: draw.randn(size, *x.shape[1:]).astype("float32"),
    model.inputs[0] if is_sequential else model.input,
  )


def images_last(structure):
  """The arrays with more than one axis per example, channels last."""
  return tf.nest.map_structure(
    lambda x: np.moveaxis(x, 1, -1) if x.ndim > 2 else x, structure
  )


def outputs(model, inputs, *, ballast=0):
  """Outputs outside of training, computed in a graph.

  Eager, TensorFlow 2.15 lacks the gradient of pooling in channels_first.

  Args:
    model: The model.
    inputs: Its inputs.
    ballast: Examples that are added to the batch, and whose outputs are left
      out. TensorFlow 2.15 confuses pooling in channels_first with pooling in
      channels_last of the same size, whichever comes second in a process.
  """
  def add(x):
    return tf.concat([x, x[:1]], 0) if ballast else x

  def compute(inputs):
    results = model(tf.nest.map_structure(add, inputs), training=False)
    return tf.nest.map_structure(lambda y: y[: len(y) - ballast], results)

  return tf.function(compute)(inputs)


def gradients(model, inputs, **options):
  """Outputs, and gradients of a loss in which every output counts differently.

  Returns:
    Arrays: the outputs, and the gradients by inputs and by weights.
  """
  inputs = tf.nest.map_structure(tf.constant, inputs)

  def compute(inputs):
    draw = np.random.RandomState(3)
    with tf.GradientTape() as tape:
      tape.watch(inputs)
      results = outputs(model, inputs, **options)
      loss = sum(
        tf.reduce_sum(output * draw.randn(*output.shape))
        for output in tf.nest.flatten(results)
      )
    return results, *tape.gradient(loss, [inputs, model.trainable_variables])

  return tf.nest.map_structure(np.asarray, tf.function(compute)(inputs))


def assert_close(actual, expected, tolerance=1e-5):
  tf.nest.map_structure(
    lambda a, b: np.testing.assert_allclose(
      np.asarray(a), np.asarray(b), rtol=tolerance, atol=tolerance
    ),
    actual,
    expected,
  )


def assert_computes_the_same(model, *, gives_images=True):
  """Outputs in both layouts, gradients, and the number of weights.

  No model here has as many filters as columns: there, Keras 3.15 adds the bias
  of a convolution in channels_first to the columns.
  """
  inputs = batches(model)
  expected, *old_gradients = gradients(model, inputs, ballast=1)
  same = to_channels_last(model, keep_input_layout=True)
  last = to_channels_last(model)
  check_layout(same)
  check_layout(last)
  actual, *new_gradients = gradients(same, inputs)
  assert_close(actual, expected)
  if gives_images:
    expected = images_last(expected)
  assert_close(outputs(last, images_last(inputs)), expected)
  assert same.count_params() == last.count_params() == model.count_params()
  assert_same_gradients(model, old_gradients, new_gradients)


def assert_same_gradients(model, old, new):
  """Weights are only permuted, so gradients are converted as weights are."""
  (of_inputs, of_weights), (new_of_inputs, new_of_weights) = old, new
  assert_close(new_of_inputs, of_inputs, 1e-4)
  assert len(new_of_weights) == len(of_weights)
  for variable, gradient in zip(model.trainable_variables, of_weights):
    variable.assign(gradient)
  converted = to_channels_last(model, keep_input_layout=True)
  expected = [np.asarray(v) for v in converted.trainable_variables]
  assert_close(new_of_weights, expected, 1e-4)


def inserted(model, new):
  """Names of the layers that the conversion has added."""
  old = {layer.name for layer in model.layers}
  added = [layer for layer in new.layers if layer.name not in old]
  return [x.name for x in added if not isinstance(x, layers.InputLayer)]


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
    tf.function(each)(images, training=True)
  assert_close(new.get_weights(), model.get_weights())


def test_batch_normalization_is_converted_where_nothing_else_is():
  model = sequential((3, 4, 5), layers.BatchNormalization(axis=1))
  assert to_channels_last(model).output_shape == (None, 4, 5, 3)
  assert_computes_the_same(model)


# layers behind a convolution
ELEMENTWISE = {
  "Activation": lambda: layers.Activation("tanh"),
  "Activation along an axis": lambda: layers.Activation("softmax"),
  "Activation by a function": lambda: layers.Activation(tf.nn.relu),
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


@keras.utils.register_keras_serializable("test_layout")
class ChannelShift(layers.Layer):
  """Adds a number to every channel."""

  def __init__(self, data_format="channels_first", **options):
    super().__init__(**options)
    self.data_format = data_format

  def build(self, input_shape):
    axis = 1 if self.data_format == "channels_first" else -1
    self.shift = self.add_weight(shape=(input_shape[axis],), name="shift")

  def call(self, inputs):
    rank = len(inputs.shape)
    ones = [1] * (rank - 2)
    if self.data_format == "channels_first":
      return inputs + tf.reshape(self.shift, [1, -1, *ones])
    return inputs + self.shift

  def compute_output_shape(self, input_shape):
    return input_shape

  def get_config(self):
    return {**super().get_config(), "data_format": self.data_format}


class PositionalShift(ChannelShift):
  """Adds a number to every element: its weights depend on the layout."""

  def build(self, input_shape):
    self.shift = self.add_weight(shape=input_shape[1:], name="shift")

  def call(self, inputs):
    return inputs + self.shift


class ForgetfulShift(ChannelShift):
  """Always works in channels_first, whatever it is told."""

  def __init__(self, data_format=None, **options):
    super().__init__("channels_first", **options)


class Doubling(layers.Layer):
  """Says nothing about axes."""

  def call(self, inputs):
    return inputs * 2.0

  def compute_output_shape(self, input_shape):
    return input_shape


class Tower(keras.Model):
  """A model with a `call` of its own."""

  def __init__(self, **options):
    super().__init__(**options)
    self.convolution = conv2d()

  def call(self, inputs):
    return self.convolution(inputs)


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


# --- What can't be converted ------------------------------------------------


def recurrent_convolution():
  return sequential((2, 3, 4, 4), layers.ConvLSTM2D(2, 3, **FIRST, name="bad"))


def wrapped_convolution():
  return sequential(
    (2, 3, 4, 4), layers.TimeDistributed(conv2d(), name="bad")
  )


def softmax_in_a_convolution():
  return sequential((3, 4, 5), conv2d(activation="softmax", name="bad"))


def a_lambda():
  stack = conv2d(), layers.Lambda(lambda x: x * 2.0, name="bad")
  return sequential((3, 4, 5), *stack)


def no_data_format():
  return sequential((3, 4, 5), Doubling(name="bad"), conv2d())


def weights_that_depend_on_the_layout():
  return sequential((3, 4, 5), PositionalShift(name="bad"))


def deaf_to_its_data_format():
  return sequential((3, 4, 5), ForgetfulShift(name="bad"))


def a_call_of_its_own():
  model = Tower(name="bad")
  model(np.zeros((1, 3, 4, 4), "float32"))
  return model


def a_nested_call_of_its_own():
  image = keras.Input((3, 4, 5))
  return keras.Model(image, Tower(name="bad")(conv2d()(image)))


class Fixed(keras.Model):
  """Makes its graph itself, so that its configuration does not hold it."""

  def __init__(self, size, **options):
    image = keras.Input((3, size, size))
    super().__init__(image, conv2d()(image), **options)
    self.size = size

  def get_config(self):
    return {"size": self.size, "name": self.name}


def a_graph_of_its_own():
  return Fixed(4, name="bad")


def not_built():
  return keras.Sequential([conv2d()], name="bad")


class Unserializable(layers.Layer):
  """Takes what can't be written down, and says nothing about it."""

  def __init__(self, function, **options):
    super().__init__(**options)
    self.function = function

  def call(self, inputs):
    return self.function(inputs)


def no_configuration():
  layer = Unserializable(lambda x: x, name="bad")
  return sequential((3, 4, 5), conv2d(), layer)


def broadcasting():
  image, rows = keras.Input((3, 4, 5)), keras.Input((4, 5))
  added = layers.Add(name="bad")([conv2d()(image), rows])
  return keras.Model([image, rows], added)


# model, what the error says about it
UNCONVERTIBLE = [
  (recurrent_convolution, "behind the time"),
  (wrapped_convolution, "inside it works in channels_first"),
  (softmax_in_a_convolution, "`Softmax` layer"),
  (a_lambda, "which axis it works on"),
  (no_data_format, "which axis it works on"),
  (weights_that_depend_on_the_layout, "depend on the layout"),
  (deaf_to_its_data_format, "`data_format`"),
  (a_call_of_its_own, "no graph"),
  (a_graph_of_its_own, "without its graph"),
  (a_nested_call_of_its_own, "which axis it works on"),
  (not_built, "give a Sequential model a `keras.Input`"),
  (no_configuration, "no `get_config"),
  (broadcasting, "ranks"),
]


@pytest.mark.parametrize(("make", "why"), UNCONVERTIBLE)
def test_what_cant_be_converted_is_named_with_the_reason(make, why):
  model = make()
  with pytest.raises(ValueError, match=f"'bad'(.|\n)*{why}"):
    to_channels_last(model)


@pytest.mark.skipif(not IS_KERAS_2, reason="Keras 3 does not have it")
def test_locally_connected_layers_are_refused():
  layer = layers.LocallyConnected2D(
    2, 3, implementation=2, name="bad", **FIRST
  )
  with pytest.raises(ValueError, match="'bad'.*order of its weights"):
    to_channels_last(sequential((3, 4, 5), layer))


@pytest.mark.parametrize("function", [to_channels_last, check_layout])
def test_what_is_no_model_is_refused(function):
  with pytest.raises(ValueError, match="`model` must be a keras.Model, got 3"):
    function(3)


# --- The new model ----------------------------------------------------------


def classifier():
  return sequential(
    (3, 4, 5),
    conv2d(4),
    layers.BatchNormalization(axis=1),
    ChannelShift(),
    layers.Flatten(),
    layers.Dense(3),
  )


def test_it_is_trained_to_the_same_loss():
  model = classifier()
  new = to_channels_last(model)
  images, labels = batches(model, 8), np.arange(8) % 3
  losses = []
  for each, x in ((model, images), (new, images_last(images))):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    each.compile(keras.optimizers.SGD(0.01), loss)
    history = each.fit(x, labels, 4, epochs=3, shuffle=False, verbose=0)
    losses.append(history.history["loss"])
  assert losses[0][-1] < losses[0][0]
  assert_close(losses[1], losses[0], 1e-3)


# Keras 3.15 saves variables in a way that numpy 2 deprecates.
@pytest.mark.filterwarnings("ignore:__array__ implementation")
@pytest.mark.parametrize("keep", [False, True])
def test_it_is_saved_and_loaded(keep, tmp_path):
  new = to_channels_last(classifier(), keep_input_layout=keep)
  new.save(tmp_path / "model.keras")
  loaded = keras.models.load_model(tmp_path / "model.keras")
  images = batches(new)
  assert_close(outputs(loaded, images), outputs(new, images))


def test_it_shares_nothing_with_the_old_model():
  model = classifier()
  before = model.get_weights()
  new = to_channels_last(model)
  new.set_weights([w * 2 for w in new.get_weights()])
  assert_close(model.get_weights(), before)
  ours = {id(layer) for layer in all_layers(model)}
  assert ours.isdisjoint(id(layer) for layer in all_layers(new))


def test_a_model_in_channels_last_comes_back_as_it_was():
  model = sequential(
    (4, 5, 3), layers.Conv2D(2, 3), layers.Flatten(), layers.Dense(2)
  )
  new = to_channels_last(model)
  assert inserted(model, new) == []
  assert_close(new.get_weights(), model.get_weights(), 0)
  images = batches(model)
  assert_close(outputs(new, images), outputs(model, images))


def test_converting_twice_changes_nothing_more():
  once = to_channels_last(classifier(), keep_input_layout=True)
  twice = to_channels_last(once, keep_input_layout=True)
  assert [x.name for x in twice.layers] == [x.name for x in once.layers]


def test_frozen_layers_stay_frozen():
  model = classifier()
  model.layers[0].trainable = False
  new = to_channels_last(model)
  assert not new.get_layer(model.layers[0].name).trainable
  assert len(new.trainable_weights) == len(model.trainable_weights)


def test_a_frozen_model_stays_frozen():
  model = classifier()
  model.trainable = False
  assert to_channels_last(model).trainable_weights == []


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_the_precision_stays_whatever_the_global_policy_is_now(policy):
  keras.mixed_precision.set_global_policy(policy)
  model = sequential(
    (3, 4, 5),
    conv2d(4),
    layers.SpatialDropout2D(0.5, **FIRST),
    layers.Activation("softmax"),
    layers.Dense(3, dtype="float32"),
  )
  keras.mixed_precision.set_global_policy("float32")
  new = to_channels_last(model, keep_input_layout=True)
  assert keras.mixed_precision.global_policy().name == "float32"
  assert new.dtype_policy.name == policy
  for old in model.layers:
    layer = new.get_layer(old.name)
    assert layer.compute_dtype == old.compute_dtype
    assert layer.output.dtype == old.output.dtype


# the default data format while the model is made, and while it is converted
@pytest.mark.parametrize("later", ["channels_first", "channels_last"])
def test_channels_first_may_have_been_the_default(later):
  keras.backend.set_image_data_format("channels_first")
  model = sequential(
    (3, 4, 5), layers.Conv2D(4, 3, padding="same"),
    layers.GlobalMaxPooling2D(keepdims=True), layers.Flatten(), layers.Dense(2),
  )
  keras.backend.set_image_data_format(later)
  assert_computes_the_same(model)


def test_integer_images_stay_integers():
  image = keras.Input((3, 4, 5), dtype="uint8")
  model = functional(image, conv2d()(layers.Rescaling(1 / 255)(image)))
  new = to_channels_last(model, keep_input_layout=True)
  assert new.inputs[0].dtype == "uint8"
  pixels = np.random.RandomState(0).randint(0, 255, (2, 3, 4, 5), "uint8")
  assert_close(outputs(new, pixels), outputs(model, pixels))


class Distilled(keras.Model):
  """A functional model that trains in its own way."""

  def train_step(self, data):
    return {"loss": 1.0}


def test_a_subclass_with_a_graph_stays_that_class():
  model = functional_of(Distilled)
  assert type(to_channels_last(model)) is type(model)


def functional_of(kind):
  image = keras.Input((3, 4, 5))
  return kind(image, conv2d()(image))


# --- check_layout -----------------------------------------------------------


class Holder(layers.Layer):
  """Keeps layers where only a thorough search finds them."""

  def __init__(self, **options):
    super().__init__(**options)
    self.parts = {"deep": [conv2d(name="hidden")]}

  def call(self, inputs):
    return self.parts["deep"][0](inputs)


# layer in channels_first, shape of its input
@pytest.mark.parametrize(
  ("make", "shape"),
  [
    (lambda: conv2d(name="hidden"), (3, 4, 5)),
    (lambda: layers.Flatten(name="hidden", **FIRST), (3, 4, 5)),
    (lambda: layers.BatchNormalization(1, name="hidden"), (3, 4, 5)),
    (lambda: layers.GroupNormalization(1, axis=1, name="hidden"), (3, 4, 5)),
    (lambda: layers.TimeDistributed(conv2d(name="hidden")), (2, 3, 4, 4)),
    (lambda: sequential((3, 4, 5), conv2d(name="hidden")), (3, 4, 5)),
    (lambda: ChannelShift(name="hidden"), (3, 4, 5)),
    (Holder, (3, 4, 5)),
  ],
)
def test_check_layout_finds_and_names(make, shape):
  image = keras.Input(shape)
  model = keras.Model(image, make()(image))
  with pytest.raises(ValueError, match="'hidden'"):
    check_layout(model)


def test_check_layout_lets_channels_last_pass():
  check_layout(sequential(
    (4, 5, 3), layers.Conv2D(2, 3), layers.BatchNormalization(),
    layers.Flatten(), layers.BatchNormalization(axis=1), layers.Dense(2),
  ))


def test_check_layout_looks_into_models_without_a_graph():
  with pytest.raises(ValueError, match="Conv2D"):
    check_layout(a_call_of_its_own())
