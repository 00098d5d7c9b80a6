"""What becomes of a converted model, and what is not converted."""

import keras
import numpy as np
import pytest
from layouts import (
  FIRST,
  IS_KERAS_2,
  ChannelShift,
  Doubling,
  ForgetfulShift,
  PositionalShift,
  Tower,
  assert_close,
  assert_computes_the_same,
  batches,
  conv2d,
  functional,
  images_last,
  inserted,
  outputs,
  sequential,
)

from tfecho.training import check_layout, to_channels_last
from tfecho.training.layers import all_layers

layers = keras.layers


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
