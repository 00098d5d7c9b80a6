"""What all tests of training share."""

import keras
import pytest


@pytest.fixture(autouse=True)
def defaults():
  """Puts back what a test may set for all of Keras."""
  yield
  keras.mixed_precision.set_global_policy("float32")
  keras.backend.set_image_data_format("channels_last")
