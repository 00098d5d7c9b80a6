import detectors
import numpy as np
import pytest

from experiments.workloads.ssd.boxes import SSD300, default_boxes
from experiments.workloads.ssd.encoding import decode, encode

DEFAULT = np.array([[0.2, 0.4, 0.4, 0.8]], np.float32)


@pytest.mark.parametrize(
  "box, offsets",
  [
    ((0.2, 0.4, 0.4, 0.8), (0, 0, 0, 0)),
    # Half of its height down is 0.5 / 0.1.
    ((0.3, 0.4, 0.5, 0.8), (5, 0, 0, 0)),
    ((0.2, 0.3, 0.4, 0.7), (0, -2.5, 0, 0)),
    # Twice as high is log(2) / 0.2.
    ((0.1, 0.4, 0.5, 0.8), (0, 0, 3.4657, 0)),
    ((0.2, 0.5, 0.4, 0.7), (0, 0, 0, -3.4657)),
  ],
)
def test_offsets_are_of_center_and_size(box, offsets):
  box = np.array([box], np.float32)
  np.testing.assert_allclose(encode(box, DEFAULT)[0], offsets, atol=1e-4)


def test_decode_returns_what_was_encoded():
  rng = np.random.RandomState(0)
  defaults = default_boxes(300, SSD300)
  some = [detectors.random_boxes(rng, len(defaults)) for _ in range(2)]
  decoded = decode(encode(np.stack(some), defaults), defaults)
  np.testing.assert_allclose(decoded, some, atol=2e-5)


def test_encode_returns_what_was_decoded():
  offsets = np.random.RandomState(0).normal(size=(3, 8_732, 4))
  offsets = offsets.astype(np.float32)
  defaults = default_boxes(300, SSD300)
  encoded = encode(decode(offsets, defaults), defaults)
  np.testing.assert_allclose(encoded, offsets, atol=1e-3)


def test_a_box_without_a_size_has_finite_offsets():
  assert np.all(np.isfinite(encode(np.zeros([1, 4], np.float32), DEFAULT)))
