"""Reading from object stores and web servers, in pipelines that can be saved.

    pipeline = tfecho.Pipeline(
      ["s3://bucket/train/1.jpg", "https://host/train/2.jpg", "/local/3.jpg"],
      read=tfecho.remote.read_file,
      decode=decode_jpeg,
      batch_size=256,
    )

or, of TFRecord files,

    records = tfecho.remote.records(["s3://bucket/1.tfrecord", ...])
    pipeline = tfecho.Pipeline(records, decode=parse, batch_size=256)

`s3://`, `http://` and `https://` are read by fsspec: `pip install
tfecho[remote]`. Everything else, `gs://` included, is read by TensorFlow.
Credentials come from where those libraries take them, such as
`AWS_ACCESS_KEY_ID` and `AWS_ENDPOINT_URL`, `~/.aws`, `FSSPEC_S3_ANON`.

A read keeps one of the threads of tf.data busy, of which there are as many as
cores. Reads mostly wait, so let there be more:

    options = tf.data.Options()
    options.threading.private_threadpool_size = 32
    source = tf.data.Dataset.from_tensor_slices(names).with_options(options)

Whatever TensorFlow reads goes on working, without the extra:

>>> tf.io.write_file("ram://remote/1.txt", b"one")
>>> names = tf.data.Dataset.from_tensors("ram://remote/1.txt")
>>> list(names.map(tfecho.remote.read_file).as_numpy_iterator())
[b'one']

These functions run in the process that has made the dataset, so not in workers
of a tf.data service.
"""

from tfecho.remote.reading import read_file, reader
from tfecho.remote.records import records

__all__ = ["read_file", "reader", "records"]
