"""A workload whose training examples are objects in a store, one file each.

```python
put(workloads.get("resnet32_cifar10", "small"), "s3://bucket/digits")
workload = stored(
  workloads.get("resnet32_cifar10", "small"), "s3://bucket/digits"
)
Own("s3://bucket/digits").holding(workload)  # the same, many read at once
```

Below the URL lies a file for every example, in a folder that is named after its
label, and `names.txt` with their names, in order:

    s3://bucket/digits/names.txt
    s3://bucket/digits/3/000000.png
    s3://bucket/digits/7/000001.png

Images that the workload holds as pixels are PNG files there, so that the very
same pixels come back; images that are files already stay what they are.
"""

from __future__ import annotations

import dataclasses
import os

import tensorflow as tf

import tfecho
from experiments.data.shards import READS_AT_ONCE
from tfecho import stages
from tfecho.remote import fetching

_NAMES = "names.txt"


def put(workload, url, *, storage_options=None):
  """Writes the training examples of a workload into a store.

  Args:
    workload: `Workload` of images.
    url: Of a folder, which need not exist; of `s3://`, of whatever else fsspec
      can write to, or of what TensorFlow can.
    storage_options: What fsspec is given to open the store; None for what its
      configuration says.

  Returns:
    The number of examples.

  Raises:
    ValueError: If the examples are no images.
  """
  check_images(workload)
  files = {}
  records = workload.train().map(workload.read)
  for number, (contents, label) in enumerate(records):
    suffix = "jpg" if contents.dtype == tf.string else "png"
    files[f"{int(label)}/{number:06d}.{suffix}"] = _encoded(contents)
  names = "\n".join(files)
  _write(url, {**files, _NAMES: names.encode()}, storage_options)
  return len(files)


def stored(workload, url, *, read=None):
  """Returns the workload with its training examples read from a store.

  Args:
    workload: `Workload` of images.
    url: Where `put` has put them.
    read: What reads a file, made by `tfecho.remote.reader`. Default: what can
      read at `url`.

  Raises:
    ValueError: If the examples are no images, or there are none at `url`.
  """
  spec = check_images(workload)
  url = url.rstrip("/")
  if read is None:
    # Nothing of Python where there is no need: tf.data services have none.
    remote = fetching.is_remote(url)
    read = tfecho.remote.read_file if remote else tf.io.read_file
  try:
    names = read(f"{url}/{_NAMES}").numpy().decode().split("\n")
  except (OSError, tf.errors.OpError) as error:
    raise ValueError(f"{url} has no examples: {error}") from error
  labels = tf.constant([int(name.split("/")[0]) for name in names], tf.int64)
  paths = tf.constant([f"{url}/{name}" for name in names])

  def decode(contents, label):
    if spec.dtype != tf.string:
      contents = tf.io.decode_png(contents, channels=spec.shape[-1])
      contents = tf.ensure_shape(contents, spec.shape)
    return workload.decode(contents, label)

  return dataclasses.replace(
    workload,
    train_examples=len(names),
    train=lambda: tf.data.Dataset.from_tensor_slices((paths, labels)),
    read=lambda path, label: (read(path), label),
    decode=decode,
  )


@dataclasses.dataclass(frozen=True)
class Own:
  """A store that is not started here, but somebody's own.

  Attributes:
    url: Where `put` has put examples.
  """

  url: str

  def holding(self, workload):
    """Returns the workload, but read from there.

    Raises:
      ValueError: If the examples are no images, or there are none.
    """
    workload = stored(workload, self.url)
    keys = workload.train().apply(stages.with_threads(READS_AT_ONCE))
    return dataclasses.replace(workload, train=lambda: keys)

  def counts(self):
    """Returns nothing: what it is asked for, it doesn't say."""
    return {}


def check_images(workload):
  """Returns the `tf.TensorSpec` of what is to be an object of its own.

  Raises:
    ValueError: If the examples of the workload are no images.
  """
  spec = workload.train().map(workload.read).element_spec
  if not isinstance(spec, tuple) or workload.augment is None:
    raise ValueError(f"a store has images, {workload.name} has none")
  return spec[0]


def _encoded(contents):
  if contents.dtype != tf.string:
    contents = tf.io.encode_png(contents)
  return contents.numpy()


def _write(url, files, storage_options):
  """Writes files, given by their names below `url`."""
  paths = {f"{url.rstrip('/')}/{name}": files[name] for name in files}
  if not fetching.is_remote(url):
    for path, contents in paths.items():
      tf.io.gfile.makedirs(os.path.dirname(path))
      tf.io.write_file(path, contents)
    return
  fsspec = fetching.imported("fsspec")
  protocol = url.split("://")[0]
  fsspec.filesystem(protocol, **storage_options or {}).pipe(paths)
