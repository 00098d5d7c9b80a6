import hashlib

import numpy as np
import pytest
from datasets import needs_fashion_mnist

from experiments import workloads
from experiments.data import fashion_mnist


@needs_fashion_mnist
def test_the_split_has_no_image_twice():
  images, labels = fashion_mnist.train()
  others, other_labels = fashion_mnist.validation()
  shape = fashion_mnist.IMAGE_SHAPE
  assert images.shape == (fashion_mnist.TRAIN_EXAMPLES, *shape)
  assert others.shape == (fashion_mnist.VALIDATION_EXAMPLES, *shape)
  assert images.dtype == np.uint8 and labels.dtype == np.int64
  assert images.min() == 0 and images.max() == 255
  both = np.concatenate([images, others])
  assert len({image.tobytes() for image in both}) == len(both)
  classes = set(range(fashion_mnist.CLASSES))
  assert set(labels) == set(other_labels) == classes


@needs_fashion_mnist
def test_the_split_is_the_same_for_ever():
  # Golden: recorded results compare only while both halves stay.
  digests = [
    hashlib.sha256(images.tobytes() + labels.astype("<i8").tobytes())
    for images, labels in (fashion_mnist.train(), fashion_mnist.validation())
  ]
  assert [digest.hexdigest()[:16] for digest in digests] == [
    "f7f631cc958cfb41",
    "164168dd826d4521",
  ]


def test_what_to_install_is_told_where_it_is_missing(monkeypatch, tmp_path):
  monkeypatch.setattr(fashion_mnist, "DIRECTORY", tmp_path)
  message = f"no {tmp_path}.*`apt-get install dataset-fashion-mnist`"
  with pytest.raises(ValueError, match=message):
    workloads.get("resnet32_cifar10", "fashion")
