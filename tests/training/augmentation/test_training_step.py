"""Augmenting in the training step of a model, on the device."""

import functools
import json

import forking
import keras
import numpy as np
import pytest
import tensorflow as tf
from backends import needs_tensorflow

from tfecho.training import augmentation, optimizers, train
from tfecho.training.augmentation import training_step

pytestmark = needs_tensorflow

SHAPE, CLASSES = (8, 10, 3), 4

AUGMENTED = pytest.mark.parametrize("name", augmentation.NAMES)


class Seen(keras.layers.Layer):
  """Keeps the inputs of the last call, and computes nothing."""

  def build(self, input_shape):
    self.last = self.add_weight(
      shape=(4, *SHAPE), initializer="zeros", trainable=False, name="last"
    )

  def call(self, inputs):
    self.last.assign(inputs)
    return inputs


def build_model():
  seen = Seen(name="seen")
  model = keras.Sequential(
    [
      keras.Input(SHAPE),
      seen,
      keras.layers.Flatten(),
      keras.layers.Dense(CLASSES),
    ]
  )
  return model


def compiled(model, optimizer="sgd"):
  loss = keras.losses.CategoricalCrossentropy(from_logits=True)
  model.compile(optimizer, loss=loss)
  return model


def augmented(name, *, seed=1, optimizer="sgd"):
  augment = augmentation.get(name, side="device")
  model = augmentation.in_train_step(build_model(), augment, seed=seed)
  return compiled(model, optimizer)


OPTIMIZERS = {
  "plain": lambda: keras.optimizers.SGD(),
  "scaled": lambda: scaled(keras.optimizers.SGD()),
}
if hasattr(keras, "ops"):  # Keras 2 does not accumulate gradients.
  accumulating = functools.partial(
    keras.optimizers.SGD, gradient_accumulation_steps=3
  )
  OPTIMIZERS["accumulating"] = accumulating
  OPTIMIZERS["accumulating, scaled"] = lambda: scaled(accumulating())

each_optimizer = pytest.mark.parametrize(
  "make_optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS
)


def scaled(optimizer):
  """As `compile` does for float16."""
  return keras.mixed_precision.LossScaleOptimizer(optimizer)


def batch(count=4):
  images = np.random.RandomState(0).uniform(size=(count, *SHAPE))
  labels = np.eye(CLASSES)[np.arange(count) % CLASSES]
  return images.astype("float32"), labels.astype("float32")


def seen(model):
  return np.array(model.get_layer("seen").last)


def inputs_of_steps(model, count):
  """What the model saw in each of so many steps on the same batch."""
  images, labels = batch()
  found = []
  for _ in range(count):
    model.train_on_batch(images, labels)
    found.append(seen(model))
  return np.stack(found)


@AUGMENTED
def test_training_sees_augmented_images_and_another_set_every_time(name):
  model = augmented(name)
  found = inputs_of_steps(model, 8)
  looks = len(np.unique(found.reshape(8, -1), axis=0))
  assert looks == 1 if name == "none" else looks >= 6
  images, _ = batch()
  is_original = [np.array_equal(step, images) for step in found]
  assert all(is_original) if name == "none" else not all(is_original)


@AUGMENTED
def test_evaluating_and_predicting_see_images_as_they_are(name):
  model = augmented(name)
  images, labels = batch()
  model.evaluate(images, labels, verbose=0)
  np.testing.assert_array_equal(seen(model), images)
  model.predict(images, verbose=0)
  np.testing.assert_array_equal(seen(model), images)


@pytest.mark.parametrize("name", ["trivial", "mixup", "cutmix"])
def test_a_seed_makes_it_reproducible(name):
  one, same, other = (
    inputs_of_steps(augmented(name, seed=seed), 3) for seed in (1, 1, 2)
  )
  np.testing.assert_array_equal(one, same)
  assert np.any(one != other)


@pytest.mark.parametrize("name", ["trivial", "mixup"])
@each_optimizer
def test_a_resumed_training_draws_what_it_would_have(
  tmp_path, name, make_optimizer
):
  """Also in the midst of a group of batches whose gradients are accumulated."""

  def start():
    model = augmented(name, optimizer=make_optimizer())
    optimizers.build(model.optimizer, model.trainable_variables)
    return model, tf.train.Checkpoint(model=model, optimizer=model.optimizer)

  model, checkpoint = start()
  inputs_of_steps(model, 4)
  path = checkpoint.write(str(tmp_path / "state"))
  expected = inputs_of_steps(model, 3)
  resumed, checkpoint = start()
  checkpoint.read(path).assert_consumed()
  np.testing.assert_array_equal(inputs_of_steps(resumed, 3), expected)


def test_labels_are_mixed_with_the_images():
  """Images that are their labels: the loss is that of 1 x 1, unless mixed."""
  augment = augmentation.get("mixup", side="device", alpha=1.0)
  dense = keras.layers.Dense(4, kernel_initializer="identity", use_bias=False)
  model = keras.Sequential(
    [keras.Input((1, 4, 1)), keras.layers.Flatten(), dense]
  )
  augmentation.in_train_step(model, augment)
  model.compile(keras.optimizers.SGD(0.0), loss="mse")
  labels = np.eye(4, dtype="float32")
  loss = model.train_on_batch(labels.reshape(4, 1, 4, 1), labels)
  assert np.max(loss) < 1e-10


def test_fit_and_weights_of_examples_work():
  model = augmented("trivial")
  images, labels = batch()
  data = tf.data.Dataset.from_tensors((images, labels, np.ones(4))).repeat(3)
  history = model.fit(data, verbose=0, shuffle=False)
  assert np.isfinite(history.history["loss"]).all()


def test_what_is_saved_is_the_model_alone(tmp_path):
  model = augmented("rand")
  model.train_on_batch(*batch())
  plain = compiled(build_model())
  plain.set_weights(model.get_weights())
  images, _ = batch()
  np.testing.assert_allclose(
    plain.predict(images, verbose=0), model.predict(images, verbose=0)
  )


@each_optimizer
def test_every_batch_is_augmented_differently(make_optimizer):
  """So are those that are one step together."""
  found = inputs_of_steps(augmented("trivial", optimizer=make_optimizer()), 7)
  assert len(np.unique(found.reshape(7, -1), axis=0)) == 7


REPLICAS = """
import json
import numpy as np
import tensorflow as tf
tf.config.set_logical_device_configuration(
  tf.config.list_physical_devices("CPU")[0],
  [tf.config.LogicalDeviceConfiguration()] * 2,
)
import keras
from tfecho.training import augmentation, train

with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
  model = keras.Sequential([
    keras.Input((8, 8, 1)), keras.layers.Flatten(),
    keras.layers.Dense(2, use_bias=False, kernel_initializer="zeros"),
  ])
  augment = augmentation.chain(*(
    augmentation.get(name, side="device") for name in ("trivial", "mixup")
  ))
  augmentation.in_train_step(model, augment, seed=1)
  model.compile(keras.optimizers.SGD(1.0), loss="mse")
images = np.random.RandomState(0).uniform(size=(4, 8, 8, 1)).astype("float32")
labels = np.eye(2, dtype="float32")[[0, 1, 0, 1]]
data = tf.data.Dataset.from_tensors((images, labels)).unbatch().batch(4)
model.fit(data, verbose=0, shuffle=False)
print(json.dumps(np.asarray(model.get_weights()[0]).tolist()))
"""


def test_replicas_train_on_augmented_batches():
  """In a process of its own: devices are split before all else."""
  result = forking.run("-c", REPLICAS)
  assert result.returncode == 0, result.stderr
  weights = json.loads(result.stdout.splitlines()[-1])
  assert np.isfinite(weights).all() and np.any(weights)


def test_replicas_draw_for_themselves(monkeypatch):
  drawn = []
  for replica in (0, 1):
    class Context:
      replica_id_in_sync_group = replica

    monkeypatch.setattr(tf.distribute, "get_replica_context", Context)
    step = training_step._seed(1, keras.optimizers.SGD())
    drawn.append(step.numpy().tolist())
  assert drawn[0] != drawn[1]


@pytest.mark.parametrize("augment", [None, abs, augmentation.get("rand")])
def test_what_is_not_for_the_device_is_refused(augment):
  with pytest.raises(ValueError, match='`augment` must .*side="device"'):
    augmentation.in_train_step(build_model(), augment)


def test_what_is_no_model_is_refused():
  augment = augmentation.get("rand", side="device")
  with pytest.raises(ValueError, match="`model` must be a keras.Model"):
    augmentation.in_train_step(build_model, augment)


@pytest.mark.parametrize("seed", [-1, 0.5, None])
def test_what_is_no_seed_is_refused(seed):
  augment = augmentation.get("rand", side="device")
  with pytest.raises(ValueError, match=f"`seed` must be .* got {seed}"):
    augmentation.in_train_step(build_model(), augment, seed=seed)


def test_train_augments_on_the_device():
  images, labels = batch()
  data = tf.data.Dataset.from_tensor_slices((images, labels)).batch(4)
  result = train(
    build_model,
    data,
    length="3ep",
    optimizer="sgd",
    loss=keras.losses.CategoricalCrossentropy(from_logits=True),
    validation_data=data,
    augment=augmentation.get("crop_flip", side="device"),
    seed=1,
    verbose=0,
  )
  assert result.steps == 3
  # Validation came last, and was not augmented.
  np.testing.assert_array_equal(seen(result.model), images)
  result.model.train_on_batch(images, labels)
  assert np.any(seen(result.model) != images)
