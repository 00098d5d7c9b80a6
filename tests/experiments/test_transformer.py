import keras
import numpy as np
import pytest
import tensorflow as tf

from experiments.workloads import transformer as module
from experiments.workloads.transformer import TiedEmbedding, transformer
from tfecho.training import check_precision

VOCABULARY = 11
LENGTH = 6


def _small(**changed):
  keras.utils.set_random_seed(0)
  sizes = {"layers": 2, "width": 8, "heads": 2, "feed_forward": 16}
  return transformer(
    vocabulary=VOCABULARY, length=LENGTH, **{**sizes, "dropout": 0.0, **changed}
  )


def _tokens(*, seed=0, batch=2):
  rng = np.random.RandomState(seed)
  return rng.randint(0, VOCABULARY, (batch, LENGTH)).astype(np.int32)


def test_the_base_size_has_the_weights_of_its_parts():
  model = transformer(vocabulary=32_000, length=16)
  attention = 4 * 512 * 512
  feed_forward = 512 * 2_048 + 2_048 + 2_048 * 512 + 512
  normalizations = 2 * 2 * 512
  layer = attention + feed_forward + normalizations
  # One matrix for tokens going in and coming out, and one last normalization.
  assert model.count_params() == 32_000 * 512 + 6 * layer + 2 * 512
  assert model.output_shape == (None, 16, 32_000)


def test_what_follows_a_token_is_told_from_those_up_to_it():
  model = _small()
  tokens = _tokens()
  logits = model(tokens).numpy()
  for position in range(LENGTH):
    changed = tokens.copy()
    changed[:, position] = (changed[:, position] + 1) % VOCABULARY
    difference = np.abs(model(changed).numpy() - logits).max(axis=(0, 2))
    assert (difference[:position] == 0).all()
    assert (difference[position:] > 1e-6).all()


def test_the_position_of_a_token_counts():
  model = _small()
  logits = model(np.full((1, LENGTH), 3, np.int32)).numpy()[0]
  # Attention over equal vectors finds the same wherever it looks.
  assert np.abs(np.diff(logits, axis=0)).max(axis=1).min() > 1e-3


def test_positions_are_told_by_sines():
  position, frequency = 5, 10_000 ** (-1 / 4)
  waves = module.sinusoids(length=9, width=8)
  assert waves.dtype == np.float32 and waves.shape == (9, 8)
  np.testing.assert_allclose(waves[position, 1], np.sin(position * frequency))
  np.testing.assert_allclose(waves[position, 5], np.cos(position * frequency))
  np.testing.assert_allclose((waves**2).sum(axis=1), 4, rtol=1e-6)


def test_tokens_come_out_by_the_matrix_that_they_go_in_by():
  keras.utils.set_random_seed(0)
  embedding = TiedEmbedding(VOCABULARY, 4)
  tokens = tf.constant([[2, 7, 2]])
  inward = embedding(tokens)
  (matrix,) = embedding.get_weights()
  expected = 2 * matrix[tokens] + module.sinusoids(3, 4)
  np.testing.assert_allclose(inward, expected, rtol=1e-5)
  vectors = tf.random.stateless_normal([1, 3, 4], seed=[1, 2])
  np.testing.assert_allclose(
    embedding(vectors, reverse=True), vectors @ matrix.T, rtol=1e-4
  )


@pytest.mark.parametrize("precision", ["mixed_bfloat16", "mixed_float16"])
def test_logits_and_weights_are_float32_in_mixed_precision(precision):
  exact = _small()
  keras.mixed_precision.set_global_policy(precision)
  try:
    model = _small()
  finally:
    keras.mixed_precision.set_global_policy("float32")
  model.set_weights(exact.get_weights())
  logits = model(_tokens())
  assert logits.dtype == tf.float32
  optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD())
  check_precision(model, optimizer=optimizer)
  # It does compute in 16 bits.
  error = np.abs(logits - exact(_tokens())).max()
  assert 0 < error < 0.1


def test_what_is_dropped_is_dropped_in_training_only():
  model = _small(dropout=0.5)
  tokens = _tokens()
  np.testing.assert_array_equal(model(tokens), model(tokens))
  in_training = [model(tokens, training=True) for _ in range(2)]
  assert np.abs(in_training[0] - in_training[1]).max() > 1e-3


def test_a_saved_model_comes_back(tmp_path):
  model = _small()
  model.save(tmp_path / "model.keras")
  loaded = keras.models.load_model(tmp_path / "model.keras")
  np.testing.assert_array_equal(loaded(_tokens()), model(_tokens()))


@pytest.mark.parametrize("width, heads", [(7, 1), (8, 3)])
def test_a_width_that_the_heads_cannot_share_is_refused(width, heads):
  with pytest.raises(ValueError, match=f"`width` must be .* got {width}"):
    _small(width=width, heads=heads)
