"""Marks for tests of Keras that not every backend can pass."""

import keras
import pytest

needs_tensorflow = pytest.mark.skipif(
  keras.backend.backend() != "tensorflow",
  reason="needs the TensorFlow backend of Keras",
)
needs_jax = pytest.mark.skipif(
  keras.backend.backend() != "jax",
  reason="needs the JAX backend of Keras",
)
