"""Shows how far a training is."""

import sys

import keras

from experiments.progress_bar import bar


class TrainingProgress(keras.callbacks.Callback):
  """A bar of all steps of a training, and above it a line for every epoch."""

  def __init__(self, total_steps, *, steps_done=0):
    """Describes the training.

    Args:
      total_steps: How many there are.
      steps_done: How many were made before it was interrupted.
    """
    super().__init__()
    self._total_steps = total_steps
    self._steps_done = steps_done

  def on_train_begin(self, logs=None):
    """Shows the bar."""
    self._bar = bar(self._total_steps, unit="step", done=self._steps_done)

  def on_train_batch_end(self, batch, logs=None):
    """Counts."""
    self._bar.update()

  def on_epoch_end(self, epoch, logs):
    """Says what the epoch came to."""
    values = ", ".join(f"{name} {value:.4g}" for name, value in logs.items())
    self._bar.write(f"epoch {epoch + 1}: {values}", file=sys.stderr)

  def on_train_end(self, logs=None):
    """Leaves the bar as it is."""
    self._bar.close()
