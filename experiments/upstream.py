"""The upstream end of an experiment's pipeline: counted, and slow if told so.

```python
upstream = Upstream(seconds=0.002)
dataset = keys.enumerate().map(upstream.wrap(read))
upstream.read  # examples read so far, read-ahead included
```
"""

import threading
import time

import numpy as np
import tensorflow as tf


class Upstream:
  """Wraps the reading of examples, as a link that serves one at a time.

  The count and the delay live in Python, outside of the dataset's state: to
  TensorFlow the stage is a stateless function, so that the pipeline can still
  be checkpointed. One object counts for one iterator.

  Attributes:
    read: Examples read, by whichever stage and buffer asked for them.
  """

  def __init__(self, seconds=0.0):
    """Makes a link.

    Args:
      seconds: Time for which an example occupies the link. Requests queue: to
        ask for several at once does not make them come faster.
    """
    self.read = 0
    self._seconds = seconds
    self._free = 0.0  # when the link is free again, on the clock of `_serve`
    self._lock = threading.Lock()

  def wrap(self, read):
    """Returns `read` over this link, from (ordinal, key) to (ordinal, record).
    """

    def read_over_link(ordinal, key):
      served = tf.numpy_function(
        self._serve, [ordinal], tf.int64, stateful=False
      )
      # Going through the link gives the ordinal back, so that no optimizer can
      # take the call for one whose result nobody needs.
      return tf.ensure_shape(served, ordinal.shape), read(key)

    return read_over_link

  def _serve(self, ordinal):
    with self._lock:
      self.read += 1
      if self._seconds:
        now = time.perf_counter()
        # Later requests start from here, not from when this thread wakes up:
        # a sleep that takes too long does not make the link any slower.
        self._free = max(now, self._free) + self._seconds
        rest = self._free - now
    if self._seconds:
      time.sleep(rest)
    return np.int64(ordinal)
