"""Data sets that TensorFlow Datasets has prepared, in a store or on a server.

```python
records = shards.load(
  "cifar10", "train", decoders,
  url="s3://bucket/tfds", cycle_length=16, block_length=16,
)
```

The folder that it has made is copied as it is, so that there are

    s3://bucket/tfds/cifar10/3.0.2/dataset_info.json
    s3://bucket/tfds/cifar10/3.0.2/cifar10-train.tfrecord-00000-of-00001

and so on. All names follow from what the package knows and from
`dataset_info.json`, so that nothing has to be listed, which a web server could
not do. A shard is fetched by one request, and is in memory as a whole while
records are taken from it; as many are as are read at once, and some ahead.
"""

from __future__ import annotations

import functools
import json
import os
import pathlib
import tempfile

import numpy as np
import tensorflow as tf

import tfecho
from tfecho import stages
from tfecho.remote.records import opener

_INFO = "dataset_info.json"
_FORMAT = "tfrecord"

# Each waits in a thread of its own; some are left for what stands behind.
READS_AT_ONCE = 32


def load(name, split, decoders, *, url, cycle_length, block_length):
  """Returns one pass over a split, as `Dataset.interleave` orders its files.

  Args:
    name: Of the data set, as TensorFlow Datasets names it.
    split: "train", "validation[:5000]", and so on.
    decoders: `tfds.decode.PartialDecoding`.
    url: Of the folder of all data sets, of `s3://` or `http(s)://`.
    cycle_length: Files that are read at a time.
    block_length: Records that are taken from one of them in a row.

  Returns:
    A dataset of dicts of features, of known length.

  Raises:
    ValueError: If the data set is not there, or is not kept as TFRecord files.
  """
  info, folder = _found(name, url.rstrip("/"))
  features = decoders.extract_features(info.features)
  files = info.splits[split].file_instructions
  open_file = opener(tfecho.remote.reader())
  data = tf.data.Dataset.from_tensor_slices(_parts(files, folder)).interleave(
    lambda path, skip, take: open_file(path).skip(skip).take(take),
    cycle_length=cycle_length,
    block_length=block_length,
    num_parallel_calls=tf.data.AUTOTUNE,
    deterministic=True,
  )
  count = sum(file.take for file in files)
  data = data.apply(tf.data.experimental.assert_cardinality(count))
  return data.apply(stages.with_threads(READS_AT_ONCE)).map(
    lambda record: features.deserialize_example(
      record, decoders=decoders.decoders
    ),
    num_parallel_calls=tf.data.AUTOTUNE,
  )


@functools.cache
def _found(name, url):
  """What describes a data set, and the URL of its folder.

  Once for a process: data that are prepared do not change.
  """
  import tensorflow_datasets as tfds

  with tempfile.TemporaryDirectory() as root:
    # Where it would be here says where it is there.
    builder = tfds.builder(name, data_dir=root)
    here = pathlib.Path(builder.data_dir).relative_to(root)
    folder = f"{url}/{here.as_posix()}"
    try:
      contents = tfecho.remote.reader()(f"{folder}/{_INFO}").numpy()
    except (OSError, tf.errors.OpError) as error:
      raise ValueError(_missing(name, url, error)) from error
    _check_format(json.loads(contents), folder)
    pathlib.Path(root, _INFO).write_bytes(contents)
    builder.info.read_from_directory(root)
  return builder.info, folder


def _check_format(info, folder):
  kept_as = info.get("fileFormat", _FORMAT)
  if kept_as != _FORMAT:
    raise ValueError(
      f"{folder} is read if it has {_FORMAT} files, it has {kept_as}: prepare"
      f" it with `--file_format={_FORMAT}`"
    )


def _missing(name, url, error):
  return (
    f"{name} is not in {url}: {error}. Prepare it by `tfds build {name}"
    " --data_dir=FOLDER`, and copy all of FOLDER there"
  )


def _parts(files, folder):
  """Paths of files, records to leave out at their beginning, and to take."""
  return (
    [f"{folder}/{os.path.basename(file.filename)}" for file in files],
    np.array([file.skip for file in files], np.int64),
    np.array([file.take for file in files], np.int64),
  )
