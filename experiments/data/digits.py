"""Handwritten digits that scikit-learn ships: 1,797 images of 8x8 pixels.

```python
images, labels = digits.train()       # 1,297 examples
images, labels = digits.validation()  # 500 other ones
```

Source: E. Alpaydin, C. Kaynak, "Optical Recognition of Handwritten Digits",
UCI Machine Learning Repository, 1998, as bundled with scikit-learn.
"""

import functools

import numpy as np
from sklearn import datasets

CLASSES = 10
TRAIN_EXAMPLES = 1_297
VALIDATION_EXAMPLES = 500
MAX_PIXEL = 16  # the images count the dark pixels in blocks of 4x4

_SPLIT_SEED = 0


@functools.cache
def _load():
  """Returns all images (uint8 [1797, 8, 8, 1]) and labels, in a fixed order.

  The original order goes by writer; it is shuffled once so that both halves of
  the split hold all of them.
  """
  digits = datasets.load_digits()
  order = np.random.RandomState(_SPLIT_SEED).permutation(len(digits.target))
  images = digits.images.astype(np.uint8)[order, :, :, np.newaxis]
  return images, digits.target.astype(np.int64)[order]


def train():
  """Returns the 1,297 training images and labels, always the same ones.

  Returns:
    A pair of arrays: images, uint8 of shape [1297, 8, 8, 1] with values from 0
    to `MAX_PIXEL`, and labels, int64 of shape [1297].
  """
  images, labels = _load()
  return images[VALIDATION_EXAMPLES:], labels[VALIDATION_EXAMPLES:]


def validation():
  """Returns the 500 validation images and labels, in the form of `train`."""
  images, labels = _load()
  return images[:VALIDATION_EXAMPLES], labels[:VALIDATION_EXAMPLES]
