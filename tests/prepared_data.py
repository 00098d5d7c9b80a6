"""Data sets on disk, made by TensorFlow Datasets, with contents of our own."""

SHARDS = 3


def prepare(name, directory, **splits):
  """Writes a data set as TensorFlow Datasets would, TFRecord files and all.

  Args:
    name: Of a data set that it knows, whose features it takes over.
    directory: Where it keeps data sets.
    **splits: For each split the list of its examples.
  """
  import tensorflow_datasets as tfds

  name, *config = name.split("/")

  class Tiny(tfds.builder_cls(name), skip_registration=True):
    """That data set, with other contents."""

    def _split_generators(self, dl_manager, *args):
      return {split: enumerate(examples) for split, examples in splits.items()}

    def _generate_examples(self, *args):
      raise AssertionError

  Tiny.name = name
  config = {"config": config[0]} if config else {}
  builder = Tiny(data_dir=directory, **config)
  builder.download_and_prepare(
    download_config=tfds.download.DownloadConfig(num_shards=SHARDS)
  )
