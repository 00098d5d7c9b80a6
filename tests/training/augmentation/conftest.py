"""Images that the tests of augmentations share."""

import pathlib

import numpy as np
import pytest
import sklearn.datasets
from PIL import Image

HEIGHT, WIDTH = 64, 96


@pytest.fixture(scope="session")
def large_photo():
  """A photograph, uint8, [427, 640, 3]."""
  path = pathlib.Path(sklearn.datasets.__file__, "..", "images", "china.jpg")
  return np.asarray(Image.open(path.resolve()))


@pytest.fixture(scope="session")
def photo(large_photo):
  """The same, uint8, [64, 96, 3]."""
  return np.asarray(Image.fromarray(large_photo).resize((WIDTH, HEIGHT)))


@pytest.fixture(scope="session")
def noise():
  """Other pixels everywhere, uint8, [8, 10, 12, 3]."""
  draw = np.random.RandomState(0)
  return draw.randint(0, 256, (8, 10, 12, 3)).astype(np.uint8)
