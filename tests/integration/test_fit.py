"""`Model.fit` on a finite dataset, which it takes to end by itself."""

import tensorflow as tf
from fitting import EPOCHS, steps_of_fit
from transformations import USES, each_of

# Those that say how many elements they emit. The others need to be told
# `steps_per_epoch`, as `Pipeline` does.
COUNTED = {
  name: use
  for name, use in USES.items()
  if name not in ("echo by a variable", "echo_on_stall")
}


def example(i):
  x = tf.cast([i], tf.float32)
  return x, -x


@each_of(COUNTED)
def test_every_epoch_makes_a_step_for_each_batch(use, implementation):
  dataset = use.apply(tf.data.Dataset.range(10).map(example), implementation)
  dataset = dataset.batch(4).prefetch(2)
  steps = -(-len(use.emits(range(10))) // 4)
  assert len(dataset) == steps
  assert steps_of_fit(dataset) == EPOCHS * steps


@each_of(COUNTED)
def test_a_remainder_that_is_dropped_makes_no_step(use, implementation):
  dataset = use.apply(tf.data.Dataset.range(10).map(example), implementation)
  dataset = dataset.batch(3, drop_remainder=True)
  steps = len(use.emits(range(10))) // 3
  assert len(dataset) == steps
  assert steps_of_fit(dataset, validation_data=dataset) == EPOCHS * steps
