"""The position in a Pipeline can be saved, its randomness included."""

import itertools

import pytest
import tensorflow as tf

import tfecho
from tfecho.pipeline import PLACES, Pipeline

# Batches of 4 before the save and behind it; without an end, the source's 50
# elements begin anew in between.
BEFORE, BEHIND = 9, 40


def augment(element, seed):
  return element, tf.random.stateless_uniform([], seed)


def pipeline():
  return Pipeline(
    tf.data.Dataset.range(50),
    read=abs,
    decode=tf.square,
    augment=augment,
    batch_size=4,
    shuffle_buffer=10,
    seed=1,
  )


def echoed(echo_after, implementation, *, symbolic=False, **arguments):
  """Returns a new dataset, as a program that was started again makes it."""
  dataset = pipeline().dataset(
    echo_after=echo_after,
    echo_buffer=4 if echo_after == "batch" else 16,
    implementation=implementation,
    **{"factor": 2.5, **arguments},
  )
  options = tf.data.Options()
  options.experimental_symbolic_checkpoint = symbolic
  return dataset.with_options(options)


def batches(iterator, count):
  return [
    [part.numpy().tolist() for part in batch]
    for batch in itertools.islice(iterator, count)
  ]


def restored(iterator, path):
  tf.train.Checkpoint(iterator=iterator).read(path).assert_consumed()
  return iterator


def assert_goes_on_after_a_restore(make, path):
  """Compares a restored run with one that was never interrupted."""
  uninterrupted = batches(iter(make()), BEFORE + BEHIND)
  iterator = iter(make())
  assert batches(iterator, BEFORE) == uninterrupted[:BEFORE]
  path = tf.train.Checkpoint(iterator=iterator).write(str(path / "position"))
  again = restored(iter(make()), path)
  assert batches(again, BEHIND) == uninterrupted[BEFORE:]


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("rounding", ["even", "random"])
@pytest.mark.parametrize("echo_after", PLACES)
def test_a_restored_pipeline_goes_on_exactly(
  tmp_path, implementation, echo_after, rounding, symbolic
):
  assert_goes_on_after_a_restore(
    lambda: echoed(
      echo_after, implementation, rounding=rounding, symbolic=symbolic
    ),
    tmp_path,
  )


@pytest.mark.parametrize("symbolic", [False, True])
def test_so_does_one_without_an_echo(tmp_path, symbolic):
  def make():
    options = tf.data.Options()
    options.experimental_symbolic_checkpoint = symbolic
    return pipeline().dataset(repeat=True).with_options(options)

  assert_goes_on_after_a_restore(make, tmp_path)


@pytest.mark.parametrize("echo_after", PLACES)
def test_so_does_one_with_a_variable(tmp_path, implementation, echo_after):
  factor = tfecho.factor_variable(2.5)
  # Saving the graph form means ignoring that it depends on a variable.
  options = tf.data.Options()
  if implementation == "graph":
    options.experimental_external_state_policy = (
      tf.data.experimental.ExternalStatePolicy.IGNORE
    )
  assert_goes_on_after_a_restore(
    lambda: echoed(echo_after, implementation, factor=factor).with_options(
      options
    ),
    tmp_path,
  )


@pytest.mark.parametrize("position", [0, 1, 31, 32])
def test_every_position_of_an_epoch_can_be_saved(
  tmp_path, implementation, position
):
  def make():
    return echoed("decode", implementation)

  rest = batches(iter(make()), None)[position:]
  iterator = iter(make())
  batches(iterator, position)
  path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "it"))
  again = restored(iter(make()), path)
  assert batches(again, None) == rest


def test_later_epochs_are_those_of_the_uninterrupted_run(
  tmp_path, implementation
):
  dataset = echoed("decode", implementation)
  first = batches(iter(dataset), None)
  iterator = iter(dataset)
  batches(iterator, BEFORE)
  path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "it"))
  rest = batches(iterator, None)
  third = batches(iter(dataset), None)

  again = echoed("decode", implementation)
  assert batches(restored(iter(again), path), None) == rest
  assert batches(iter(again), None) == third != first
