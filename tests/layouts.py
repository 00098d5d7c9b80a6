"""Models in two layouts, and whether they compute the same."""

import keras
import numpy as np
import tensorflow as tf

from tfecho.training import check_layout, to_channels_last
from tfecho.training.layers import all_layers

layers = keras.layers
FIRST = {"data_format": "channels_first"}
IS_KERAS_2 = keras.__version__.startswith("2.")
ON_JAX = keras.backend.backend() == "jax"
_reshape = tf.reshape if IS_KERAS_2 else keras.ops.reshape


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
  if ON_JAX:
    return model(inputs, training=False)

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
  if ON_JAX:
    return _gradients_on_jax(model, inputs)
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


def _gradients_on_jax(model, inputs):
  import jax

  others = [v.value for v in model.non_trainable_variables]

  def compute(inputs, weights):
    draw = np.random.RandomState(3)
    results, _ = model.stateless_call(weights, others, inputs, training=False)
    loss = sum(
      (output * draw.randn(*output.shape)).sum()
      for output in tf.nest.flatten(results)
    )
    return loss, results

  weights = [v.value for v in model.trainable_variables]
  found, results = jax.grad(compute, argnums=(0, 1), has_aux=True)(
    inputs, weights
  )
  return tf.nest.map_structure(np.asarray, (results, *found))


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
      return inputs + _reshape(self.shift, [1, -1, *ones])
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
