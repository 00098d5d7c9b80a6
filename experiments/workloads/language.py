"""What all language models have in common: model, loss, metric, optimizer.

Inputs and labels are int32 of shape [batch, length], outputs are logits.
"""

import functools

import keras
import tensorflow as tf

from experiments.workloads.tokens import PADDING
from experiments.workloads.transformer import transformer
from experiments.workloads.workload import Workload

# Sizes that two CPU cores train in minutes.
SMALL = {
  "layers": 2,
  "width": 64,
  "heads": 4,
  "feed_forward": 256,
  "dropout": 0.0,  # a few passes over the data leave nothing to fit too well
}

# Their logits are the largest tensor of an evaluation.
_VALIDATION_BATCH = 64


def language_model(corpus, *, sequence_length, sizes, **fields):
  """Returns a `Workload`: a Transformer that learns what comes next.

  Args:
    corpus: `Corpus` that it learns from.
    sequence_length: Number of tokens that are seen at a time.
    sizes: Dict of further arguments of `transformer`.
    **fields: The other fields of the workload.
  """
  vocabulary = corpus.vocabulary
  decode = vocabulary.decoder(sequence_length)

  def validation():
    return corpus.validation.map(decode).batch(_VALIDATION_BATCH).cache()

  return Workload(
    train_examples=len(corpus.keys),
    train=lambda: corpus.keys,
    validation=validation,
    read=corpus.read,
    decode=decode,
    augment=None,
    model=functools.partial(
      transformer,
      vocabulary=vocabulary.size,
      length=sequence_length,
      **sizes,
    ),
    # Of "Attention Is All You Need", arXiv 1706.03762, section 5.3.
    optimizer=functools.partial(
      keras.optimizers.Adam, beta_2=0.98, epsilon=1e-9
    ),
    loss=token_cross_entropy,
    metric=TokenCrossEntropy,
    metric_name="validation cross entropy per token",
    maximize=False,
    **fields,
  )


def token_cross_entropy():
  """Returns the loss: the mean over the tokens of a batch but for padding."""
  return keras.losses.SparseCategoricalCrossentropy(
    from_logits=True, ignore_class=PADDING
  )


class TokenCrossEntropy(keras.metrics.Mean):
  """Cross entropy in nats, the mean over all tokens that are no padding.

  Tokens count, not batches: it does not depend on how texts are batched.
  """

  def __init__(self, name="token_cross_entropy", **options):
    super().__init__(name=name, **options)

  def update_state(self, labels, logits, sample_weight=None):
    """Adds a batch.

    Args:
      labels: Integers of shape [batch, length].
      logits: Of shape [batch, length, vocabulary].
      sample_weight: Weight of every text, of shape [batch], or None.
    """
    losses = keras.losses.sparse_categorical_crossentropy(
      labels, logits, from_logits=True
    )
    weights = tf.cast(tf.not_equal(labels, PADDING), losses.dtype)
    if sample_weight is not None:
      weights *= tf.cast(sample_weight, losses.dtype)[:, tf.newaxis]
    return super().update_state(losses, weights)
