"""Fails unless a machine without a compiler works, and says so exactly once.

Run with a `CXX` that does not exist and an empty `TFECHO_CACHE_DIR`.
"""

import logging

import tensorflow as tf

import tfecho


class Records(logging.Handler):
  """Keeps what is logged."""

  def __init__(self):
    super().__init__(logging.WARNING)
    self.messages = []

  def emit(self, record):
    """Keeps one message."""
    self.messages.append(record.getMessage())


records = Records()
logging.getLogger("tfecho").addHandler(records)

for _ in range(2):
  dataset = tf.data.Dataset.range(3).apply(tfecho.echo(2))
  dataset = dataset.apply(tfecho.shuffle_after_echo(8))
  values = sorted(dataset.as_numpy_iterator())
  if values != [0, 0, 1, 1, 2, 2]:
    raise SystemExit(f"expected every element twice, got {values}")

print(*records.messages, sep="\n")
if len(records.messages) != 1:
  raise SystemExit(f"expected one warning, got {len(records.messages)}")
if "batches may hold an element twice" not in records.messages[0]:
  raise SystemExit("expected the warning to say what the graph can't do")
