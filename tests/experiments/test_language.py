"""What is learned from text, and how it is measured."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from datasets import needs_addresses

from experiments import workloads
from experiments.workloads import language
from experiments.workloads.language import TokenCrossEntropy
from experiments.workloads.tokens import PADDING

NAMES = ["transformer_lm1b", "transformer_common_crawl"]
VOCABULARY = 1_000
STEPS = 120
MARGIN = 0.4  # nats


def _text_and_logits(*, batch=3, length=5, vocabulary=7):
  """Labels of which some are padding, and any logits."""
  rng = np.random.RandomState(0)
  labels = rng.randint(PADDING + 1, vocabulary, (batch, length))
  labels[0, 2:] = labels[2, 4:] = PADDING
  logits = 3 * rng.normal(size=(batch, length, vocabulary))
  return labels.astype(np.int32), logits.astype(np.float32)


def _cross_entropy(labels, logits):
  """By the definition, over what is no padding."""
  probabilities = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
  chosen = np.take_along_axis(probabilities, labels[..., None], axis=-1)
  return -np.log(chosen[..., 0][labels != PADDING]).mean()


@pytest.fixture
def loss():
  return language.token_cross_entropy()


def test_the_loss_is_the_mean_over_tokens_that_are_no_padding(loss):
  labels, logits = _text_and_logits()
  expected = _cross_entropy(labels, logits)
  assert float(loss(labels, logits)) == pytest.approx(expected, rel=1e-5)


def test_padding_has_no_gradient(loss):
  labels, logits = _text_and_logits()
  logits = tf.constant(logits)
  with tf.GradientTape() as tape:
    tape.watch(logits)
    value = loss(labels, logits)
  gradient = np.abs(tape.gradient(value, logits)).max(axis=-1)
  np.testing.assert_array_equal(gradient > 0, labels != PADDING)


@pytest.mark.parametrize("batch_size", [1, 2, 3])
def test_the_metric_does_not_depend_on_how_texts_are_batched(batch_size):
  labels, logits = _text_and_logits()
  metric = TokenCrossEntropy()
  for start in range(0, len(labels), batch_size):
    batch = slice(start, start + batch_size)
    metric.update_state(labels[batch], logits[batch])
  expected = _cross_entropy(labels, logits)
  assert float(metric.result()) == pytest.approx(expected, rel=1e-5)
  metric.reset_state()
  metric.update_state(labels[:1], logits[:1])
  assert float(metric.result()) == pytest.approx(
    _cross_entropy(labels[:1], logits[:1]), rel=1e-5
  )


def test_a_text_of_weight_zero_does_not_count():
  labels, logits = _text_and_logits()
  metric = TokenCrossEntropy()
  metric.update_state(labels, logits, sample_weight=[1, 0, 1])
  kept = [0, 2]
  assert float(metric.result()) == pytest.approx(
    _cross_entropy(labels[kept], logits[kept]), rel=1e-5
  )


def _batches(workload):
  keys = workload.train().shuffle(workload.train_examples, seed=0).repeat()
  examples = keys.map(workload.read).map(workload.decode)
  return examples.batch(workload.batch_size)


def _evaluate(workload, model):
  metric = workload.metric()
  for inputs, labels in workload.validation().take(2):
    metric.update_state(labels, model.predict_on_batch(inputs))
  return float(metric.result())


def _unigram_cross_entropy(workload):
  """Of a predictor that knows how frequent tokens are, and nothing else."""
  examples = workload.train().map(workload.read).map(workload.decode)
  _, labels = next(iter(examples.batch(5_000)))
  counts = np.bincount(labels.numpy().ravel(), minlength=VOCABULARY) + 1.0
  counts[PADDING] = 1e-9
  logits = np.log(counts / counts.sum()).astype(np.float32)
  metric = workload.metric()
  for _, labels in workload.validation().take(2):
    metric.update_state(
      labels, tf.broadcast_to(logits, [*labels.shape, VOCABULARY])
    )
  return float(metric.result())


@pytest.mark.one_stack
@needs_addresses
@pytest.mark.parametrize("name", NAMES)
def test_it_learns_more_than_how_frequent_tokens_are(name):
  workload = workloads.get(name, "small")
  keras.utils.set_random_seed(0)
  model = workload.model()
  model.compile(
    workload.optimizer(learning_rate=0.003),
    loss=workload.loss(),
    jit_compile=False,
  )
  history = model.fit(
    _batches(workload), steps_per_epoch=STEPS // 3, epochs=3, verbose=0
  )
  losses = history.history["loss"]
  assert losses == sorted(losses, reverse=True)
  trivial = _unigram_cross_entropy(workload)
  assert _evaluate(workload, model) < trivial - MARGIN
