"""What echo and shuffle_after_echo cost beside what they replace.

    python -m experiments.benchmark --suite=overhead

Costs are those of whole pipelines, the source included, in microseconds per
element that comes out at the end; a batch is an element. The
native implementation is asked for by name: a silent fall-back to the graph
would measure something else.
"""

import functools

import tensorflow as tf

import tfecho
from experiments.benchmark import drive, memory
from experiments.benchmark.runner import Bound, Case

IMAGE_SHAPE = (224, 224, 3)

echo = functools.partial(tfecho.echo, implementation="native")
graph_echo = functools.partial(tfecho.echo, implementation="graph")


def cases():
  """The cases, from the smallest elements to the largest."""
  return [
    native_scalars(),
    counted_scalars(),
    counted_scalars(buffer_size=0),
    graph_scalars_unending(),
    graph_scalars(),
    shuffled_scalars(),
    token_batches(),
    images(),
    image_batches(),
    *memory.cases(),
  ]


def native_scalars():
  return _case(
    "scalars, e = 2",
    _scalars,
    {
      "native": lambda ds: ds.apply(echo(2)),
      "native, buffer_size=0": lambda ds: ds.apply(echo(2, buffer_size=0)),
      "idiom": drive.idiom(2),
    },
    [
      Bound("native", "idiom", 1 / 15),
      Bound("native, buffer_size=0", "idiom", 1 / 50),
    ],
  )


def counted_scalars(**options):
  """Counting has to be cheap enough to leave it on."""
  def counted(dataset):
    return dataset.apply(echo(2, stats=tfecho.Stats(), **options))

  arguments = ", ".join(f"{name}={value}" for name, value in options.items())
  return _case(
    f"scalars, e = 2, counted, {arguments or 'defaults'}",
    _scalars,
    {
      "stats": counted,
      "no stats": lambda ds: ds.apply(echo(2, **options)),
    },
    [Bound("stats", "no stats", 1.05)],
  )


def graph_scalars_unending():
  """Nothing but the repetition: no read-ahead, no cardinality to state."""
  return _case(
    "scalars, e = 2, graph, unending",
    lambda: _scalars().repeat(),
    {
      "buffer_size=0": lambda ds: ds.apply(graph_echo(2, buffer_size=0)),
      "idiom": drive.idiom(2),
    },
    [Bound("buffer_size=0", "idiom", 1.15)],
  )


def graph_scalars():
  return _case(
    "scalars, e = 2, graph, finite",
    _scalars,
    {"graph": lambda ds: ds.apply(graph_echo(2)), "idiom": drive.idiom(2)},
    [Bound("graph", "idiom", 1.7)],
  )


def shuffled_scalars(buffer_size=1_000):
  """A buffer of fresh elements beside one of as many plain elements."""
  def echoed(**options):
    shuffle = tfecho.shuffle_after_echo(buffer_size)
    return lambda ds: ds.apply(echo(2, **options)).apply(shuffle)

  return _case(
    f"scalars, e = 2, shuffle buffer {buffer_size}",
    _scalars,
    {
      "buffer_size=0": echoed(buffer_size=0),
      "defaults": echoed(),
      "Dataset.shuffle": lambda ds: ds.shuffle(buffer_size),
    },
    [
      Bound("buffer_size=0", "Dataset.shuffle", 0.8),
      Bound("defaults", "Dataset.shuffle"),
    ],
  )


def token_batches():
  """Small records in large numbers: the pipeline itself is the bottleneck."""
  def echoed(dataset):
    dataset = dataset.apply(echo(2))
    dataset = dataset.apply(tfecho.shuffle_after_echo(500))
    return dataset.batch(64)

  return _case(
    "128 tokens, shuffled, batches of 64",
    _sequences,
    {
      "echo(2)": echoed,
      "no echo": lambda ds: ds.shuffle(1_000).batch(64),
      "idiom": lambda ds: ds.apply(drive.idiom(2)).shuffle(1_000).batch(64),
    },
    [Bound("echo(2)", "no echo", 1.0), Bound("echo(2)", "idiom", 1 / 12)],
    stride=200,
  )


def images():
  return _case(
    "uint8 224x224x3, e = 4",
    _images,
    {"echo(4)": lambda ds: ds.apply(echo(4)), "source alone": lambda ds: ds},
    [Bound("echo(4)", "source alone", 0.5)],
    stride=1_000,
  )


def image_batches():
  """Against an echo without `flat_map`, which copies every repeat twice."""
  def repeat_and_unbatch(dataset):
    return dataset.map(lambda x: tf.repeat(x[tf.newaxis], 4, axis=0)).unbatch()

  return _case(
    "float32 32x224x224x3, e = 4",
    _image_batches,
    {
      "echo(4)": lambda ds: ds.apply(echo(4)),
      "map(tf.repeat), unbatch": repeat_and_unbatch,
    },
    [Bound("echo(4)", "map(tf.repeat), unbatch", 1 / 10)],
    stride=16,
  )


def _case(what, source, pipelines, bounds, *, stride=10_000):
  """Contenders that continue the same source in their own ways."""
  def start(pipeline):
    return drive.cost_of(pipeline(source()), stride=stride)

  contenders = {
    name: functools.partial(start, pipeline)
    for name, pipeline in pipelines.items()
  }
  return Case(what, "us", contenders, bounds)


def _scalars():
  """Longer than any measurement, yet of known cardinality."""
  return tf.data.Dataset.range(10**15)


def _sequences():
  tokens = tf.random.stateless_uniform(
    [10_000, 128], seed=(0, 0), maxval=32_000, dtype=tf.int32
  )
  return tf.data.Dataset.from_tensor_slices(tokens).repeat()


def _images():
  """New memory is written for every image, as by a decoder."""
  return _scalars().map(lambda i: tf.fill(IMAGE_SHAPE, tf.cast(i, tf.uint8)))


def _image_batches():
  shape = [32, *IMAGE_SHAPE]
  return _scalars().map(lambda i: tf.fill(shape, tf.cast(i, tf.float32)))
