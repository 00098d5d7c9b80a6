"""Counts fresh examples from an ordinal that travels with each element.

Every element that is taken from the source gets the next number, for ever, over
all epochs; all copies of an element carry the same one. So what the training
has cost can be read off the batches, whichever implementation made the echo,
and nothing in the input pipeline has to keep a count.

```python
counter = FreshCounter()
for ordinals, (inputs, labels) in batches:
  counter.update(ordinals.numpy())
counter.consumed  # examples that upstream had to deliver for this
counter.trained   # how many of them have been in a batch
```
"""

import numpy as np


class FreshCounter:
  """What the batches of one run say about fresh and repeated examples.

  Attributes:
    emitted: Examples in all batches, copies included.
    consumed: Highest ordinal seen, plus one: how many fresh examples upstream
      had to deliver, those included that wait in a shuffle buffer.
    trained: Number of different ordinals seen.
  """

  def __init__(self):
    self.emitted = 0
    self.consumed = 0
    self.trained = 0
    self._batches = 0
    self._distinct_shares = 0.0
    self._distances = 0
    self._last = np.full(1024, -1)  # position of the last copy, by ordinal

  def update(self, ordinals):
    """Counts one batch.

    Args:
      ordinals: Integer array of shape [batch].
    """
    self.consumed = max(self.consumed, int(ordinals.max()) + 1)
    self._grow()
    for ordinal in ordinals:
      self._see(ordinal)
    self._batches += 1
    self._distinct_shares += len(np.unique(ordinals)) / len(ordinals)

  @property
  def distinct_share(self):
    """Distinct fresh examples in a batch over its size, mean over batches."""
    return self._distinct_shares / self._batches

  @property
  def repeat_distance(self):
    """Positions from a copy to the next of its example, mean; None if none."""
    repeats = self.emitted - self.trained
    return self._distances / repeats if repeats else None

  def _see(self, ordinal):
    last = self._last[ordinal]
    if last < 0:
      self.trained += 1
    else:
      self._distances += int(self.emitted - last)
    self._last[ordinal] = self.emitted
    self.emitted += 1

  def _grow(self):
    missing = self.consumed - len(self._last)
    if missing > 0:
      more = np.full(max(missing, len(self._last)), -1)
      self._last = np.concatenate([self._last, more])
