"""How good a model is by the metric of its workload."""

from __future__ import annotations

import time

import keras


class Evaluation(keras.callbacks.Callback):
  """Adds a workload's metric to the logs of every epoch, as `val_metric`.

  ```python
  Evaluation(workload).of(model)                      # a number
  model.fit(..., callbacks=[Evaluation(workload)])
  ```

  Attributes:
    seconds: Time that the evaluations of this training took.
  """

  def __init__(self, workload):
    super().__init__()
    self.seconds = 0.0
    self._metric = workload.metric()
    self._validation = workload.validation()

  def of(self, model):
    """Returns the metric of a model on the whole validation set."""
    self._metric.reset_state()
    for inputs, labels in self._validation:
      self._metric.update_state(labels, model.predict_on_batch(inputs))
    return float(self._metric.result())

  def on_epoch_end(self, epoch, logs):
    """Evaluates."""
    start = time.perf_counter()
    logs["val_metric"] = self.of(self.model)
    self.seconds += time.perf_counter() - start
