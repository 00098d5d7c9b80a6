"""Data sets that TensorFlow Datasets has prepared, as they lie on disk.

```python
records = prepared.load(
  "imagenet2012", "train", ["image", "label"], encoded=["image"]
)
next(iter(records))  # {"image": b"\\xff\\xd8\\xff...", "label": 317}
```

Nothing is ever downloaded. The data are looked for in the directory that the
environment variable `TFDS_DATA_DIR` names, else in `~/tensorflow_datasets`. It
may be in an object store or on a web server: see `shards`.
"""

import os
import pathlib
import textwrap
import urllib.parse

import tensorflow as tf

from experiments.data import shards
from tfecho.native import cache
from tfecho.remote import fetching

VARIABLE = "TFDS_DATA_DIR"
_DEFAULT_DIRECTORY = "~/tensorflow_datasets"

# Files that are read side by side; more do not help a single disk, and storage
# behind a network needs about as many.
_FILES_AT_ONCE = 16

_BLOCK = 16  # Records of a file, before it is the turn of the next.


def load(name, split, features, *, encoded=()):
  """Returns one pass over a split, always in the same order.

  Several files are read at a time, a few records of each in turn. Nothing is
  kept in memory, however small the data set: reading is what is studied here.

  Args:
    name: Of the data set, as TensorFlow Datasets names it: "cifar10",
      "coco/2017", "imagenet2012:5.1.0".
    split: "train", "validation[:5000]", and so on.
    features: Names of the features that are wanted.
    encoded: Names of those that are left as they are stored, such as images
      that are to remain JPEG files.

  Returns:
    A dataset of dicts with an entry for each of `features`. Its length is
    known.

  Raises:
    ValueError: If the data set is not there; the message has the command that
      prepares it. If TensorFlow Datasets is not installed.
  """
  tfds = _tfds()
  decoders = tfds.decode.PartialDecoding(
    dict.fromkeys(features, True),
    decoders=dict.fromkeys(encoded, tfds.decode.SkipDecoding()),
  )
  if fetching.is_remote(directory()):
    data = shards.load(
      name,
      split,
      decoders,
      url=directory(),
      cycle_length=_FILES_AT_ONCE,
      block_length=_BLOCK,
    )
    return data.with_options(_deterministic())
  builder = tfds.builder(name, data_dir=directory())
  try:
    return builder.as_dataset(
      split=split,
      shuffle_files=False,
      decoders=decoders,
      read_config=tfds.ReadConfig(**_read_options()),
    )
  except AssertionError as error:  # that is what it raises for no data
    raise ValueError(_missing(builder)) from error


def directory():
  """Returns the path of the directory where prepared data sets are."""
  return os.path.expanduser(os.environ.get(VARIABLE) or _DEFAULT_DIRECTORY)


def beside(folder):
  """Returns the path of a folder of this machine for what is made of the data.

  It is where the data are; for data that are elsewhere, among the files that
  `tfecho` keeps.

  Args:
    folder: Its name.
  """
  if "://" not in directory():
    return pathlib.Path(directory(), folder)
  return cache.folder() / folder / urllib.parse.quote(directory(), safe="")


def _tfds():
  try:
    import tensorflow_datasets
  except ImportError as error:
    raise ValueError(
      "TensorFlow Datasets is not on this machine: install it with"
      " `pip install tensorflow-datasets`, which needs Python 3.10"
    ) from error
  return tensorflow_datasets


def _deterministic():
  options = tf.data.Options()
  options.deterministic = True
  return options


def _read_options():
  return {
    "options": _deterministic(),
    "try_autocache": False,
    "interleave_cycle_length": _FILES_AT_ONCE,
    "interleave_block_length": _BLOCK,
    "skip_prefetch": True,  # what reads ahead is up to the pipeline
  }


def _missing(builder):
  name = builder.name
  if builder.builder_config is not None:
    name += f"/{builder.builder_config.name}"
  message = (
    f"{name} is not on this machine: there is no {builder.data_dir}. Name"
    f" another directory by --data_dir or {VARIABLE}, or prepare it by"
    f" `tfds build {name} --data_dir={directory()}`"
  )
  if builder.MANUAL_DOWNLOAD_INSTRUCTIONS:
    message += (
      f". Put into {os.path.join(directory(), 'downloads', 'manual')} before"
      " what has to be fetched by hand: "
      + _one_line(builder.MANUAL_DOWNLOAD_INSTRUCTIONS)
    )
  return message


def _one_line(text):
  return " ".join(textwrap.dedent(text).split())
