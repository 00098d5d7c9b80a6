"""Mixed precision is set for new layers, and mistakes with it are found."""

import keras
import numpy as np
import pytest
from backends import needs_tensorflow

from tfecho.training import check_precision, set_precision

layers = keras.layers


def classifier(*, dtype=None, output_dtype="float32", **options):
  """A model of one layer per line; `dtype` is that of all but the last."""
  return keras.Sequential(
    [
      keras.Input((4, 4, 3)),
      layers.Conv2D(2, 3, name="conv", dtype=dtype),
      layers.BatchNormalization(name="norm", dtype=dtype),
      layers.Flatten(dtype=dtype),
      layers.Dense(2, name="logits", dtype=output_dtype),
    ],
    **options,
  )


def compiled(model, optimizer="sgd"):
  model.compile(optimizer, "mse")
  return model


# --- set_precision ----------------------------------------------------------


# precision, what layers compute in, what they keep their weights in
@pytest.mark.parametrize(
  ("precision", "compute", "weights"),
  [
    ("float32", "float32", "float32"),
    ("mixed_bfloat16", "bfloat16", "float32"),
    ("mixed_float16", "float16", "float32"),
  ],
)
def test_layers_made_from_now_on_have_the_precision(
  precision, compute, weights
):
  set_precision(precision)
  layer = layers.Dense(1)
  layer.build((None, 2))
  assert layer.compute_dtype == compute
  assert {dtype_name(weight) for weight in layer.weights} == {weights}


def test_layers_that_exist_or_have_their_own_keep_it():
  before = layers.Dense(1)
  set_precision("mixed_bfloat16")
  assert before.compute_dtype == "float32"
  assert layers.Dense(1, dtype="float32").compute_dtype == "float32"


@pytest.mark.parametrize("precision", ["amp", "bfloat16", "float64", None, 16])
def test_another_precision_is_refused_by_name(precision):
  with pytest.raises(ValueError, match=f"`precision`.*got {precision!r}"):
    set_precision(precision)
  assert keras.mixed_precision.global_policy().name == "float32"


# --- Models that are fine ---------------------------------------------------


@pytest.mark.parametrize(
  "precision", ["float32", "mixed_bfloat16", "mixed_float16"]
)
def test_a_model_made_and_compiled_under_a_precision_passes(precision):
  set_precision(precision)
  model = compiled(classifier())
  check_precision(model)
  images, labels = np.zeros((4, 4, 4, 3)), np.zeros((4, 2))
  model.fit(images.astype("float32"), labels, verbose=0)
  check_precision(model)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_only_float16_has_to_be_compiled(dtype):
  check_precision(classifier(dtype=dtype))


def test_numbers_that_are_not_floating_point_may_be_given_out():
  labels = keras.Input((), dtype="int32")
  check_precision(keras.Model(labels, layers.Identity()(labels)))


def test_a_frozen_float16_model_needs_no_loss_scaling():
  model = classifier(dtype="mixed_float16")
  model.trainable = False
  check_precision(model)


# --- Outputs ----------------------------------------------------------------


class Tower(keras.Model):
  """A model with a `call` of its own, and layers in a list."""

  def __init__(self, dtype, first=None, **options):
    super().__init__(**options)
    self.tower = [first or layers.Dense(2), layers.Dense(2, dtype=dtype)]

  def call(self, inputs):
    for layer in self.tower:
      inputs = layer(inputs)
    return inputs


class Twins(Tower):
  """Takes and returns dicts."""

  def call(self, inputs):
    return {name: super(Twins, self).call(x) for name, x in inputs.items()}


def deep(dtype):
  dense = layers.Dense(2, name="deep", dtype=dtype)
  return keras.Sequential([keras.Input((3,)), dense])


def two_outputs():
  image = keras.Input((3,))
  first = layers.Dense(2, dtype="float32")(image)
  second = layers.Dense(2, dtype="mixed_bfloat16", name="low")(first)
  return keras.Model(image, {"a": first, "b": second})


def nested():
  inner = classifier(dtype="float32", output_dtype="mixed_bfloat16")
  image = keras.Input((4, 4, 3))
  return keras.Model(image, inner(image))


class Unserializable(layers.Layer):
  """Has no configuration; what is checked does not need one."""

  def __init__(self, function, **options):
    super().__init__(**options)
    self.function = function

  def call(self, inputs):
    return self.function(inputs)


def unserializable():
  layer = Unserializable(lambda x: x, dtype="mixed_bfloat16", name="low")
  return keras.Sequential([keras.Input((3,)), layer])


def softmax():
  image = keras.Input((3,))
  logits = layers.Dense(2, dtype="float32")(image)
  return keras.Model(
    image, layers.Activation("softmax", dtype="mixed_bfloat16", name="low")(
      logits
    )
  )


# model, layer named, dtype named
@pytest.mark.parametrize(
  ("make", "name", "dtype"),
  [
    (lambda: classifier(output_dtype="mixed_bfloat16"), "logits", "bfloat16"),
    (lambda: classifier(output_dtype="mixed_float16"), "logits", "float16"),
    pytest.param(
      lambda: classifier(output_dtype="float64"),
      "logits",
      "float64",
      marks=needs_tensorflow,  # JAX has no float64, unless it is told to.
    ),
    (two_outputs, "low", "bfloat16"),
    (softmax, "low", "bfloat16"),
    (nested, "logits", "bfloat16"),
    (unserializable, "low", "bfloat16"),
  ],
)
def test_an_output_that_is_not_float32_is_named_with_the_remedy(
  make, name, dtype
):
  with pytest.raises(ValueError, match=f"'{name}'.* {dtype},.*dtype='float32'"):
    check_precision(make())


def test_the_outputs_of_a_subclassed_model_are_checked():
  model = Tower("mixed_bfloat16", name="tower")
  model(np.zeros((2, 3), "float32"))
  with pytest.raises(ValueError, match="'tower'.* bfloat16"):
    check_precision(model)
  model = Tower("float32")
  model(np.zeros((2, 3), "float32"))
  check_precision(model)


def test_the_outputs_of_a_model_that_takes_a_dict_are_checked():
  model = Twins("mixed_bfloat16", name="twins")
  model({"a": np.zeros((2, 2), "float32"), "b": np.zeros((4, 2), "float32")})
  with pytest.raises(ValueError, match="'twins'.* bfloat16"):
    check_precision(model)


def test_a_subclassed_model_has_to_be_called_before():
  with pytest.raises(ValueError, match="'tower'.*call it once"):
    check_precision(Tower("float32", name="tower"))


def test_what_is_no_model_is_refused():
  with pytest.raises(ValueError, match="`model` must be a keras.Model, got 3"):
    check_precision(3)


# --- Weights ----------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_weights_in_16_bit_are_named_with_the_remedy(dtype):
  model = classifier(dtype=dtype)
  with pytest.raises(
    ValueError, match=f"'conv'.*kernel.* {dtype},.*'mixed_{dtype}'"
  ):
    check_precision(model)


@pytest.mark.skipif(
  keras.__version__.startswith("2."), reason="Keras 2 keeps them in float32"
)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_statistics_in_16_bit_are_named_with_the_remedy(dtype):
  model = keras.Sequential([
    keras.Input((3,)),
    layers.BatchNormalization(
      center=False, scale=False, name="norm", dtype=dtype
    ),
    layers.Activation("linear", dtype="float32"),
  ])
  with pytest.raises(ValueError, match=f"'norm'.*moving_mean.* {dtype}"):
    check_precision(model)


def test_weights_are_found_however_deep_they_are():
  model = Tower("float32", deep("bfloat16"))
  model(np.zeros((2, 3), "float32"))
  with pytest.raises(ValueError, match="'deep'.* bfloat16"):
    check_precision(model)


# --- Loss scaling -----------------------------------------------------------


def test_single_layers_in_float16_do_not_make_keras_scale_the_loss():
  model = compiled(classifier(dtype="mixed_float16"))
  with pytest.raises(
    ValueError, match="'conv' computes in float16.*LossScaleOptimizer"
  ):
    check_precision(model)


def test_float16_deep_inside_is_found():
  model = Tower("float32", deep("mixed_float16"))
  compiled(model)(np.zeros((2, 3), "float32"))
  with pytest.raises(ValueError, match="'deep' computes in float16"):
    check_precision(model)


def test_loss_scaling_that_was_added_by_hand_is_enough():
  scaled = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD())
  check_precision(compiled(classifier(dtype="mixed_float16"), scaled))


def test_loss_scaling_is_known_once_the_model_is_compiled():
  set_precision("mixed_float16")
  model = classifier()
  with pytest.raises(ValueError, match="'conv'.*no optimizer yet"):
    check_precision(model)
  check_precision(compiled(model))


def test_the_optimizer_of_a_training_loop_of_ones_own_is_asked():
  set_precision("mixed_float16")
  model, plain = classifier(), keras.optimizers.SGD(name="plain")
  with pytest.raises(ValueError, match="'plain' does not scale"):
    check_precision(model, optimizer=plain)
  scaled = keras.mixed_precision.LossScaleOptimizer(plain)
  check_precision(model, optimizer=scaled)


def test_a_fixed_scale_counts_if_it_scales():
  model = classifier(dtype="mixed_float16")
  for scale, is_enough in ((1024.0, True), (1.0, False)):
    compiled(model, with_fixed_scale(scale))
    if is_enough:
      check_precision(model)
    else:
      with pytest.raises(ValueError, match="does not scale"):
        check_precision(model)


def with_fixed_scale(scale):
  if keras.__version__.startswith("2."):
    return keras.mixed_precision.LossScaleOptimizer(
      keras.optimizers.SGD(), dynamic=False, initial_scale=scale
    )
  return keras.optimizers.SGD(loss_scale_factor=scale)


def test_float16_trains_only_with_loss_scaling():
  """A gradient below the smallest float16 arrives, if the loss is scaled."""
  moved = {}
  for name, wrap in (
    ("plain", lambda optimizer: optimizer),
    ("scaled", keras.mixed_precision.LossScaleOptimizer),
  ):
    model = keras.Sequential([
      keras.Input((1,)),
      layers.Dense(1, use_bias=False, dtype="mixed_float16"),
      layers.Activation("linear", dtype="float32"),
    ])
    model.set_weights([np.zeros((1, 1))])
    model.compile(
      wrap(keras.optimizers.SGD(1.0)),
      loss=lambda labels, outputs: outputs * 1e-8,
    )
    model.fit(np.ones((1, 1), "float32"), np.ones((1, 1)), verbose=0)
    moved[name] = float(model.get_weights()[0][0, 0])
  assert moved["plain"] == 0.0
  assert moved["scaled"] == pytest.approx(-1e-8, rel=0.01)


def dtype_name(weight):
  return getattr(weight.dtype, "name", weight.dtype)
