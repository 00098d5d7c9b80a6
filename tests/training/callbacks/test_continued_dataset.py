"""Whatever is accepted goes on exactly, from wherever it is saved."""

import pytest
import tensorflow as tf

from tfecho.training.callbacks import continued_dataset
from tfecho.training.callbacks.continued_dataset import ContinuedDataset

PASSES = 3
STEPS_OF_ENDLESS_DATA = 5  # between the end of a pass and that of the next


def numbers(start=0, stop=8):
  return tf.data.Dataset.range(start, stop)


def shuffled(start=0, stop=8):
  return numbers(start, stop).shuffle(8, seed=1)


def with_noise(data):
  noise = tf.data.Dataset.random(seed=2, rerandomize_each_iteration=True)
  return tf.data.Dataset.zip((data, noise))


ACCEPTED = {
  "shuffle": lambda: shuffled().batch(3),
  "shuffle, take": lambda: shuffled().take(4).batch(2),
  "shuffle, work ahead": lambda: (
    shuffled().map(abs, num_parallel_calls=2).batch(2).prefetch(2)
  ),
  "shuffle, interleave": lambda: (
    shuffled(0, 2).interleave(lambda i: numbers(4 * i, 4 * i + 4)).batch(2)
  ),
  "shuffle, repeat, shuffle": lambda: (
    shuffled().repeat().map(abs).shuffle(8, seed=3).batch(2)
  ),
  "shuffle once, shuffle": lambda: (
    numbers()
    .shuffle(8, seed=1, reshuffle_each_iteration=False)
    .shuffle(8, seed=3)
    .batch(2)
  ),
  "repeat, shuffle, repeat once": lambda: (
    numbers().repeat(2).shuffle(8, seed=3).batch(2).repeat(1)
  ),
  "cache, shuffle": lambda: numbers().cache().shuffle(8, seed=3).batch(2),
  "shuffle, read to its end": lambda: shuffled().batch(3).unbatch(),
  "shuffle, noise": lambda: with_noise(shuffled()).batch(2),
}
REFUSED = {
  "shuffle, shuffle": lambda: shuffled().batch(2).shuffle(2, seed=3),
  "shuffle, batch, repeat": lambda: shuffled().batch(3).repeat(),
  "shuffle, repeat twice": lambda: shuffled().repeat(2).batch(2),
  "noise, shuffle": lambda: with_noise(numbers()).shuffle(2, seed=3),
  "shuffle, concatenated": lambda: (
    numbers(0, 4).concatenate(shuffled(4, 8)).batch(2)
  ),
  "shuffle, cache": lambda: shuffled().cache().batch(2),
}


def steps_per_pass(data):
  if data.cardinality() == tf.data.INFINITE_CARDINALITY:
    return STEPS_OF_ENDLESS_DATA
  return sum(1 for _ in data)


def elements(data, steps, *, begin=0, before_each=lambda step: None):
  """What `fit` sees from step `begin` on, in passes of so many steps."""
  seen = []
  for step in range(begin, PASSES * steps):
    before_each(step)
    seen.append([x.numpy().tolist() for x in tf.nest.flatten(next(iter(data)))])
    if (step + 1) % steps == 0:
      data.begin_pass()
  return seen


def steps_not_resumed_exactly(make_data, directory):
  """Saves before every step, and goes on from there with data made anew."""
  steps = steps_per_pass(make_data())
  data = ContinuedDataset(make_data())
  passes = []

  def save(step):
    tf.train.Checkpoint(data=data.iterator).write(str(directory / str(step)))
    passes.append(data.passes)

  expected = elements(data, steps, before_each=save)
  assert elements(ContinuedDataset(make_data()), steps) == expected
  different = []
  for step, data_pass in enumerate(passes):
    data = ContinuedDataset(make_data())
    data.skip_to_pass(data_pass)
    tf.train.Checkpoint(data=data.iterator).read(str(directory / str(step)))
    if elements(data, steps, begin=step) != expected[step:]:
      different.append(step)
  return different


@pytest.mark.parametrize("name", ACCEPTED)
def test_data_that_is_accepted_goes_on_exactly_from_every_step(tmp_path, name):
  assert steps_not_resumed_exactly(ACCEPTED[name], tmp_path) == []


@pytest.mark.parametrize("name", REFUSED)
def test_data_that_is_refused_would_go_on_with_other_elements(
  monkeypatch, tmp_path, name
):
  with pytest.raises(ValueError, match="put an endless `repeat` right behind"):
    ContinuedDataset(REFUSED[name]())
  monkeypatch.setattr(continued_dataset, "check_passes", lambda data: None)
  assert steps_not_resumed_exactly(REFUSED[name], tmp_path) != []


def test_passes_are_those_of_the_dataset_itself():
  steps = steps_per_pass(shuffled())
  itself = shuffled()
  expected = [[int(x)] for _ in range(PASSES) for x in itself]
  assert elements(ContinuedDataset(shuffled()), steps) == expected
