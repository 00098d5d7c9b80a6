"""The upstream end of an experiment's pipeline: counted, and slow if told so.

```python
upstream = Upstream(seconds=0.002)
dataset = keys.enumerate().map(upstream.wrap(read))
upstream.read  # examples read so far, read-ahead included
```
"""

import math
import threading
import time

import numpy as np
import tensorflow as tf

# Longer than it takes to ask for the next example when there is nothing in the
# way: asking is a part of reading.
_ASKING_SECONDS = 0.003


class Upstream:
  """Wraps the reading of examples, as a link that serves one at a time.

  The count and the delay live in Python, outside of the dataset's state: to
  TensorFlow the stage is a stateless function, so that the pipeline can still
  be checkpointed. One object counts for one iterator.

  Attributes:
    seconds: Time for which an example occupies the link, on average; to be
      changed at any time.
    read: Examples read, by whichever stage and buffer asked for them.
  """

  def __init__(self, seconds=0.0, *, jitter=0.0, spell=1, burst=1, seed=0):
    """Makes a link.

    Args:
      seconds: Time for which an example occupies the link, on average. Requests
        queue: to ask for several at once does not make them come faster.
      jitter: Standard deviation of that time over its mean. It is drawn from a
        gamma distribution: with 1, an exponential one.
      spell: Examples for which one draw is good.
      burst: Examples that come at once, after the time of all of them.
      seed: Of the draws.
    """
    self.seconds = seconds
    self._jitter = jitter
    self._spell = spell
    self._burst = burst
    self._seed = seed
    self._lock = threading.Lock()
    self._waiting = 0  # requests
    self.clear()

  def clear(self):
    """Forgets what was read, as before a new iterator."""
    with self._lock:
      self.read = 0
      self._draw = np.random.default_rng(self._seed)
      self._pace = 1.0  # of this spell, over the mean
      self._free = 0.0  # when the link is free again, on the clock of `_serve`
      self._busy_since = 0.0
      self._busy_seconds = 0.0
      self._answered = -math.inf  # when the last request was

  @property
  def busy_seconds(self):
    """Time in which it was waited for or asked for the next, up to now."""
    with self._lock:
      return self._busy_seconds + self._busy_for()

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
    rest = self._ask()
    if rest > 0:
      time.sleep(rest)
    self._answer()
    return np.int64(ordinal)

  def _ask(self):
    """Queues; returns in how many seconds it is this request's turn."""
    with self._lock:
      now = time.perf_counter()
      if not self._waiting:
        pause = now - self._answered
        self._busy_seconds += pause if pause <= _ASKING_SECONDS else 0.0
        self._busy_since = now
      self._waiting += 1
      # Later requests start from here, not from when this thread wakes up: a
      # sleep that takes too long does not make the link any slower.
      self._free = max(now, self._free) + self._occupied()
      self.read += 1
      return self._free - now

  def _answer(self):
    with self._lock:
      if self._waiting == 1:
        self._busy_seconds += self._busy_for()
        self._answered = time.perf_counter()
      self._waiting -= 1

  def _busy_for(self):
    """Returns for how long there have been requests without a pause."""
    return time.perf_counter() - self._busy_since if self._waiting else 0.0

  def _occupied(self):
    """Returns for how long the next example occupies the link."""
    if self._jitter and self.read % self._spell == 0:
      shape = 1 / self._jitter**2
      self._pace = self._draw.gamma(shape, 1 / shape)
    if self.read % self._burst:
      return 0.0
    return self.seconds * self._burst * self._pace
