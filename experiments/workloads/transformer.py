"""The decoder-only Transformer, a language model.

```python
model = transformer(vocabulary=32_000, length=256)   # 35 million weights
logits = model(tokens)       # of what follows each token, from those up to it
```

Tokens become vectors, with sines of their position added; every layer adds
what its heads find in earlier positions, then what a small network makes of it;
the vectors of the last layer are compared with those of all tokens.

Source: A. Vaswani et al., "Attention Is All You Need", arXiv 1706.03762, whose
base size is the default here: 6 layers, 512 wide, 8 heads, 2,048 in between,
one matrix for tokens going in and coming out. There is no encoder, and layers
are normalized where they begin, which trains without care at the start: R.
Xiong et al., "On Layer Normalization in the Transformer Architecture",
arXiv 2002.04745.
"""

import keras
import numpy as np
import tensorflow as tf

_LONGEST_WAVE = 10_000  # over 2 pi, in positions


def transformer(
  *,
  vocabulary,
  length,
  layers=6,
  width=512,
  heads=8,
  feed_forward=2_048,
  dropout=0.1,
):
  """Builds the network; its outputs are logits in float32.

  Args:
    vocabulary: Number of different tokens.
    length: Tokens in a sequence.
    layers: Number of layers.
    width: Numbers per position, between layers.
    heads: Of the attention in each layer; each is `width / heads` wide.
    feed_forward: Units of the network that each layer ends with.
    dropout: Share of a layer's results that is left out in training.

  Returns:
    A `keras.Model` from tokens, int32 of shape [batch, length], to logits of
    shape [batch, length, vocabulary].

  Raises:
    ValueError: If `width` is odd or not a multiple of `heads`.
  """
  if width % 2 or width % heads:
    raise ValueError(
      f"`width` must be even and a multiple of `heads`, {heads}, got {width}"
    )
  tokens = keras.Input((length,), dtype="int32")
  embedding = TiedEmbedding(vocabulary, width)
  x = keras.layers.Dropout(dropout)(embedding(tokens))
  for _ in range(layers):
    x = _residual(x, _attention(heads), dropout)
    x = _residual(x, _feed_forward(feed_forward), dropout)
  logits = embedding(_normalize(x), reverse=True)
  return keras.Model(tokens, logits, name="transformer")


def _residual(x, branch, dropout):
  added = keras.layers.Dropout(dropout)(branch(_normalize(x)))
  return keras.layers.Add()([x, added])


def _attention(heads):
  def branch(x):
    attend = keras.layers.MultiHeadAttention(
      heads, key_dim=x.shape[-1] // heads, use_bias=False
    )
    return attend(x, x, use_causal_mask=True)

  return branch


def _feed_forward(units):
  def branch(x):
    hidden = keras.layers.Dense(units, activation="relu")(x)
    return keras.layers.Dense(x.shape[-1])(hidden)

  return branch


def _normalize(x):
  return keras.layers.LayerNormalization(epsilon=1e-6)(x)


@keras.saving.register_keras_serializable(package="experiments")
class TiedEmbedding(keras.layers.Layer):
  """The vectors of tokens, which stand at the beginning and at the end.

  From tokens, int32 of shape [batch, length], it makes their vectors, of shape
  [batch, length, width], with sines of the position added. With `reverse`, it
  makes logits out of such vectors: float32 of shape [batch, length,
  vocabulary], whatever it computes in.
  """

  def __init__(self, vocabulary, width, **options):
    super().__init__(**options)
    self._vocabulary = vocabulary
    self._width = width

  def build(self, input_shape):
    self.embeddings = self.add_weight(
      name="embeddings",
      shape=(self._vocabulary, self._width),
      # Long enough for logits, and scaled up where a vector meets the sines.
      initializer=keras.initializers.RandomNormal(stddev=self._width**-0.5),
    )
    self._positions = sinusoids(input_shape[-1], self._width)
    super().build(input_shape)

  def call(self, inputs, *, reverse=False):
    embeddings = tf.cast(
      tf.convert_to_tensor(self.embeddings), self.compute_dtype
    )
    if reverse:
      logits = tf.matmul(inputs, embeddings, transpose_b=True)
      # The loss needs the range; a product in float32 would cost as much as
      # all layers in 16 bits.
      return tf.cast(logits, tf.float32)
    vectors = tf.gather(embeddings, inputs) * self._width**0.5
    return vectors + tf.cast(self._positions, vectors.dtype)

  def get_config(self):
    own = {"vocabulary": self._vocabulary, "width": self._width}
    return {**super().get_config(), **own}


def sinusoids(length, width):
  """Returns what is added to the vectors so that they tell their position.

  Args:
    length: Number of positions.
    width: Numbers per position: as many sines as cosines.

  Returns:
    float32 of shape [length, width]: sin(p / w), then cos(p / w), where w goes
    from 1 to 10,000, at position p.
  """
  waves = _LONGEST_WAVE ** (np.arange(width // 2) / (width // 2))
  angles = np.arange(length)[:, np.newaxis] / waves
  return np.concatenate([np.sin(angles), np.cos(angles)], 1).astype(np.float32)
