"""Marks for tests of data that not every machine has."""

import pytest

from experiments.data import fashion_mnist

needs_fashion_mnist = pytest.mark.skipif(
  not fashion_mnist.DIRECTORY.exists(),
  reason="needs Debian's package dataset-fashion-mnist",
)
