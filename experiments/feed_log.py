"""What a training was fed with, step by step, and how long it waited for that.

```python
log = FeedLog()
model.fit(log.watch(numbered_batches), ...)
log.take(20)      # the ordinals in the batches of the first 20 steps
log.wait_seconds  # until now
```

`tfecho.monitor` times the waiting, too, but has no graph implementation, and
what is compared must be measured alike.
"""

from __future__ import annotations

import collections
import time

import tensorflow as tf


class FeedLog:
  """Takes the ordinals off the batches of a dataset, and keeps them in order.

  One log is good for one iterator at a time, which must not be read ahead: the
  dataset that `watch` returns is to be the last stage.

  Attributes:
    wait_seconds: Time in which batches were waited for.
  """

  def __init__(self):
    self.clear()

  def clear(self):
    """Forgets everything, as before a new iterator."""
    self.wait_seconds = 0.0
    self._batches = collections.deque()
    self._requested = None

  def watch(self, dataset):
    """Returns the batches of a dataset of (ordinals, batch)."""
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    # A zip asks its datasets one after the other.
    requests = tf.data.Dataset.from_tensors(0).repeat().map(self._on_request)
    watched = tf.data.Dataset.zip((requests, dataset)).map(self._on_batch)
    return watched.with_options(options)

  def take(self, steps):
    """Returns the ordinals of the next so many steps, a list of arrays."""
    return [self._batches.popleft() for _ in range(steps)]

  # Stateful functions, or TensorFlow would leave out what returns nothing new.

  def _on_request(self, element):
    tf.numpy_function(self._note_request, [], [])
    return element

  def _on_batch(self, _, numbered):
    ordinals, batch = numbered
    tf.numpy_function(self._note_batch, [ordinals], [])
    return batch

  def _note_request(self):
    self._requested = time.perf_counter()

  def _note_batch(self, ordinals):
    self.wait_seconds += time.perf_counter() - self._requested
    self._batches.append(ordinals)
