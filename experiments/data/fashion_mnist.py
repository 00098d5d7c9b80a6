"""Fashion-MNIST, from a Debian package: 70,000 grey images of 28x28 pixels.

```python
images, labels = fashion_mnist.train()       # 10,000 examples
images, labels = fashion_mnist.validation()  # 2,500 other ones
```

A part of it, so that two CPU cores get through in minutes: the first examples
of the training file, whose order is random. The test file is left alone.

Source: H. Xiao, K. Rasul, R. Vollgraf, "Fashion-MNIST: a Novel Image Dataset
for Benchmarking Machine Learning Algorithms", arXiv 1708.07747.
"""

import functools
import gzip
import pathlib

import numpy as np

CLASSES = 10
IMAGE_SHAPE = (28, 28, 1)
TRAIN_EXAMPLES = 10_000
VALIDATION_EXAMPLES = 2_500

# Where the package puts it.
DIRECTORY = pathlib.Path("/usr/share/datasets/fashion-mnist")

# Bytes before the values, in the IDX format: four for the type, and four for
# each dimension.
_IMAGES_HEADER = 16
_LABELS_HEADER = 8


def train():
  """Returns the 10,000 training images and labels, always the same ones.

  Returns:
    A pair of arrays: images, uint8 of shape [10000, 28, 28, 1] with values from
    0 to 255, and labels, int64 of shape [10000].

  Raises:
    ValueError: If the package is not installed.
  """
  images, labels = _load(DIRECTORY)
  return images[:TRAIN_EXAMPLES], labels[:TRAIN_EXAMPLES]


def validation():
  """Returns the 2,500 validation images and labels, in the form of `train`."""
  images, labels = _load(DIRECTORY)
  return images[TRAIN_EXAMPLES:], labels[TRAIN_EXAMPLES:]


@functools.cache
def _load(directory):
  count = TRAIN_EXAMPLES + VALIDATION_EXAMPLES
  try:
    images = _values(
      directory / "train-images-idx3-ubyte.gz",
      _IMAGES_HEADER,
      count * int(np.prod(IMAGE_SHAPE)),
    )
    labels = _values(
      directory / "train-labels-idx1-ubyte.gz", _LABELS_HEADER, count
    )
  except FileNotFoundError as error:
    raise ValueError(
      f"Fashion-MNIST is not on this machine: there is no {error.filename}."
      " On Debian and Ubuntu, install it with"
      " `apt-get install dataset-fashion-mnist`"
    ) from error
  return images.reshape(count, *IMAGE_SHAPE), labels.astype(np.int64)


def _values(path, header, count):
  """The first `count` bytes behind the header; the rest stays compressed."""
  with gzip.open(path) as file:
    file.read(header)
    return np.frombuffer(file.read(count), np.uint8)
