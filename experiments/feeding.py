"""The input of a training run: a workload's stages, fed as an arm says.

Elements are pairs of an ordinal, which numbers everything that is taken from
the source, and what the workload's stages make of a key.
"""

from __future__ import annotations

import tensorflow as tf

import tfecho
from experiments import served, workloads
from tfecho import stages

# Reads wait in threads of their own, or they would keep the train step, which
# runs in TensorFlow's two or so, from running. One of them never reads.
_INPUT_THREADS = 5


def batches(settings, upstream, *, factor=None, store=None):
  """Returns the endless dataset of batches that a run trains on.

  Args:
    settings: `RunSettings`.
    upstream: `Upstream` that the examples are read over.
    factor: Variable that holds the factor, if it changes during the run.
    store: `store.process.Store` or `store.objects.Own` that has the examples;
      None for memory.

  Returns:
    A dataset of (ordinals, (inputs, labels)).
  """
  workload = workloads.get(
    settings.workload, settings.preset, augmentation=settings.augmentation
  )
  if store is not None:
    workload = store.holding(workload)
  common = {"batch_size": settings.batch_size, "seed": settings.seed}
  arguments = echo(
    settings.arm,
    batch_size=settings.batch_size,
    echo_buffer=settings.echo_buffer,
    factor=factor,
  )
  if settings.service_echo is not None:
    # Its workers have threads of their own.
    keys = served.numbered_keys(workload, settings.seed)
    read = _beside_ordinal(workload.read)
    return served.service(settings.service_echo).batches(
      _pipeline(workload, keys, read, **common),
      settings.arm,
      implementation=settings.implementation,
      echo=arguments,
    )
  if settings.arm.cached:
    buffer = settings.echo_buffer
    made = _cached_pipeline(workload, upstream, buffer=buffer, **common)
  else:
    keys = _numbered_keys(workload, settings.seed)
    made = pipeline(workload, keys, upstream, **common)
  return made.dataset(implementation=settings.implementation, **arguments)


def plain_pipeline(workload, *, batch_size, seed, shuffle_buffer=None):
  """Returns the `tfecho.Pipeline` of a workload, with nothing counted.

  Args:
    workload: `Workload`.
    batch_size: Examples in a batch.
    seed: Of the order, the augmentation and the echo.
    shuffle_buffer: Keys among which the next one is chosen; None for as many as
      the workload says.

  Returns:
    A pipeline of (inputs, labels).
  """
  return tfecho.Pipeline(
    workload.train(),
    read=workload.read,
    decode=workload.decode,
    augment=workload.augment,
    batch_size=batch_size,
    shuffle_buffer=shuffle_buffer or _keys_shuffled(workload),
    seed=seed,
  )


def pipeline(workload, keys, upstream, *, batch_size, seed):
  """Returns the `tfecho.Pipeline` of a workload.

  Args:
    workload: `Workload`.
    keys: Dataset of pairs: an ordinal, and a key as `workload.read` takes it.
    upstream: `Upstream` that the examples are read over.
    batch_size: Examples in a batch.
    seed: Of the augmentation and the echo.

  Returns:
    A pipeline of (ordinals, (inputs, labels)).
  """
  read = _read(workload, upstream)
  keys = keys.apply(stages.with_threads(_threads(workload)))
  return _pipeline(workload, keys, read, batch_size=batch_size, seed=seed)


def _cached_pipeline(workload, upstream, *, buffer, batch_size, seed):
  """The same without an echo, where every example is read only once.

  Those read are shuffled like copies behind an echo, so that the first epoch
  need not be over before the training begins. Numbers are kept, too: what comes
  from memory is not fresh.
  """
  read = _read(workload, upstream)
  threads = _threads(workload)
  at_once = stages.reads_at_once(threads)

  def records(_):
    keys = workload.train().shuffle(_keys_shuffled(workload), seed=seed)
    records = keys.enumerate().map(read, num_parallel_calls=at_once)
    return records.cache().shuffle(buffer, seed=seed).repeat()

  # Made in a function, every iterator has a cache of its own. In one that they
  # share, the training would find what was looked at before it began.
  source = tf.data.Dataset.from_tensors(0).flat_map(records).repeat()
  source = source.apply(stages.with_threads(threads))
  return _pipeline(workload, source, None, batch_size=batch_size, seed=seed)


def _threads(workload):
  """As many as the data of the workload want, if they say so."""
  return stages.private_threads(workload.train()) or _INPUT_THREADS


def _pipeline(workload, source, read, *, batch_size, seed):
  return tfecho.Pipeline(
    source,
    read=read,
    decode=_beside_ordinal(workload.decode),
    augment=workload.augment and _beside_ordinal_seeded(workload.augment),
    batch_size=batch_size,
    seed=seed,
  )


def _keys_shuffled(workload):
  return workload.shuffle_buffer or workload.train_examples


def echo(arm, *, batch_size, echo_buffer, factor=None):
  """Returns the arguments of `Pipeline.dataset` that make an arm.

  Args:
    arm: `Arm`.
    batch_size: Examples in a batch.
    echo_buffer: Fresh examples held behind the echo, if the arm shuffles there.
    factor: Variable that holds the factor, if it changes while it runs.
  """
  if arm.echo_after is None:
    return {}
  if arm.on_stall:
    # As many fresh examples as the shuffle of the others holds.
    return {
      "echo_after": arm.echo_after,
      "max_factor": arm.factor,
      "echo_buffer": echo_buffer,
    }
  held = echo_buffer // batch_size if arm.echo_after == "batch" else echo_buffer
  return {
    "echo_after": arm.echo_after,
    "factor": arm.factor if factor is None else factor,
    "echo_buffer": held if arm.shuffle else 0,
  }


def _numbered_keys(workload, seed):
  """Every example once an epoch, in an order of its own, numbered for ever.

  The keys are shuffled before they are numbered: a buffer behind would hold
  ordinals back, and count as consumed what still waits in it.
  """
  keys = workload.train()
  keys = keys.shuffle(_keys_shuffled(workload), seed=seed)
  # TensorFlow 2.15 sees an end to the numbers, if far away: hence the second.
  return keys.repeat().enumerate().repeat()


def _read(workload, upstream):
  return upstream.wrap(lambda key: _call(workload.read, key))


def _beside_ordinal(stage):
  return lambda ordinal, element: (ordinal, _call(stage, element))


def _beside_ordinal_seeded(stage):
  return lambda ordinal, element, seed: (
    ordinal,
    _call(stage, element, seed=seed),
  )


def _call(stage, element, **seed):
  """Calls a stage as `Dataset.map` does, tuples unpacked."""
  if isinstance(element, tuple):
    return stage(*element, **seed)
  return stage(element, **seed)
