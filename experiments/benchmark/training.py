"""Times training steps of the network that the suites train, ResNet-32.

    probe = step_of(resnet32())
    probe()  # milliseconds per step
"""

import time

import keras
import numpy as np
import tensorflow as tf

from experiments.workloads import resnet

BATCH_SIZE = 128
CLASSES = 10
IMAGE_SHAPE = (32, 32, 3)  # that of CIFAR-10


def resnet32():
  """ResNet-32, in channels_last, under the global policy."""
  return resnet.cifar_resnet(32, input_shape=IMAGE_SHAPE, classes=CLASSES)


def step_of(model, *, steps=3):
  """Returns a probe for the milliseconds that a training step of `model` takes.

  The step is traced and taken twice before, off the clock.

  Args:
    model: From images of `model.input_shape` to logits.
    steps: Taken each time that the probe is called. The fastest counts: on a
      shared machine the others tell about the neighbours.
  """
  draw = np.random.RandomState(0)
  size = (BATCH_SIZE, *model.input_shape[1:])
  images = tf.constant(draw.randn(*size), tf.float32)
  labels = tf.constant(draw.randint(CLASSES, size=BATCH_SIZE))
  loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
  optimizer = keras.optimizers.SGD(0.01, momentum=0.9)
  optimizer.build(model.trainable_variables)

  @tf.function
  def step():
    with tf.GradientTape() as tape:
      value = loss(labels, model(images, training=True))
    variables = model.trainable_variables
    gradients = tape.gradient(value, variables)
    optimizer.apply_gradients(zip(gradients, variables))
    return value

  def probe():
    return min(_milliseconds(step) for _ in range(steps))

  step()
  step()
  return probe


def _milliseconds(step):
  start = time.perf_counter()
  step().numpy()  # waits for the device
  return 1e3 * (time.perf_counter() - start)
