"""Trains a workload's model, step by step, from the same start every time."""

import keras
import tensorflow as tf


class Trainer:
  """A model with its optimizer, traced once and reset between runs.

  Tracing takes as long as a hundred steps of a small model, and would count as
  time of whichever run comes first. A reset gives the same start as building
  everything anew under the same seed.
  """

  def __init__(self, workload):
    self._workload = workload
    self._model = workload.model()
    self._optimizer = workload.optimizer(1.0)  # `train` sets the rate
    self._optimizer.build(self._model.trainable_variables)
    self._optimizer_start = [v.numpy() for v in self._optimizer.variables]
    self._loss = workload.loss()
    self._metric = workload.metric()
    self._validation = workload.validation()
    signature = self._validation.element_spec
    self._step = tf.function(self._step, input_signature=signature)
    self._predict = tf.function(self._predict, input_signature=signature[:1])
    self._warm_up()

  @property
  def traces(self):
    """How often the training step was traced."""
    return self._step.experimental_get_tracing_count()

  def reset(self, seed):
    """Puts weights and optimizer to the start that belongs to a seed."""
    keras.utils.set_random_seed(seed)
    self._model.set_weights(self._workload.model().get_weights())
    for variable, start in zip(
      self._optimizer.variables, self._optimizer_start
    ):
      variable.assign(start)

  def train(self, inputs, labels, learning_rate):
    """Does one step on one batch."""
    self._optimizer.learning_rate = learning_rate
    self._step(inputs, labels)

  def evaluate(self):
    """Returns the workload's metric on its whole validation set."""
    self._metric.reset_state()
    for inputs, labels in self._validation:
      self._metric.update_state(labels, self._predict(inputs))
    return float(self._metric.result())

  def _warm_up(self):
    inputs, labels = next(iter(self._validation))
    self.train(inputs, labels, learning_rate=0.0)
    self.evaluate()

  def _step(self, inputs, labels):
    with tf.GradientTape() as tape:
      loss = self._loss(labels, self._model(inputs, training=True))
    variables = self._model.trainable_variables
    gradients = tape.gradient(loss, variables)
    self._optimizer.apply_gradients(zip(gradients, variables))

  def _predict(self, inputs):
    return self._model(inputs, training=False)
