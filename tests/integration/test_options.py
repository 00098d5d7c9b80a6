"""What belongs to a dataset beside its elements: options, names, inputs."""

import re

import forking
import pytest
import tensorflow as tf
from iterators import values
from transformations import IMPLEMENTATIONS, USES, each_use

import tfecho

RANGE = tf.data.Dataset.range

REWRITES = (
  "filter_fusion",
  "filter_parallelization",
  "inject_prefetch",
  "map_and_batch_fusion",
  "map_and_filter_fusion",
  "map_fusion",
  "map_parallelization",
  "noop_elimination",
  "parallel_batch",
  "shuffle_and_repeat_fusion",
)


@each_use
def test_options_of_the_input_are_kept(use, implementation):
  options = tf.data.Options()
  options.deterministic = False
  options.threading.private_threadpool_size = 3
  options.experimental_optimization.map_fusion = True
  dataset = use.apply(RANGE(3).with_options(options), implementation)

  kept = dataset.options()
  assert kept.deterministic is False
  assert kept.threading.private_threadpool_size == 3
  assert kept.experimental_optimization.map_fusion is True


@each_use
def test_options_of_the_result_come_on_top(use, implementation):
  before, behind = tf.data.Options(), tf.data.Options()
  before.deterministic = False
  before.autotune.enabled = False
  behind.deterministic = True
  dataset = use.apply(RANGE(3).with_options(before), implementation)

  merged = dataset.with_options(behind).options()
  assert merged.deterministic is True
  assert merged.autotune.enabled is False


@pytest.mark.parametrize("enabled", [True, False])
@each_use
def test_no_optimization_changes_the_elements(use, implementation, enabled):
  options = tf.data.Options()
  for rewrite in REWRITES:
    setattr(options.experimental_optimization, rewrite, enabled)
  dataset = RANGE(8).map(lambda i: i + 1).filter(lambda i: i > 1)
  dataset = use.apply(dataset, implementation).repeat(2)
  dataset = dataset.map(lambda i: -i).batch(3).unbatch().take(100)

  expected = 2 * use.emits(range(-2, -9, -1))
  emitted = values(dataset.with_options(options))
  assert use.comparable(emitted) == use.comparable(expected)


@pytest.mark.parametrize("deterministic", [True, False])
@each_use
def test_copies_belong_to_what_came_in_whatever_order(
  use, implementation, deterministic
):
  options = tf.data.Options()
  options.deterministic = deterministic
  dataset = RANGE(40).map(lambda i: i, num_parallel_calls=4)
  dataset = use.apply(dataset, implementation)
  emitted = values(dataset.with_options(options))

  assert len(emitted) == len(use.emits(range(40)))
  assert set(emitted) == set(range(40))
  if use.in_order:
    fresh = list(dict.fromkeys(emitted))
    assert emitted == use.emits(fresh)
    assert not deterministic or fresh == list(range(40))


def echo(dataset, implementation, name):
  return dataset.apply(
    tfecho.echo(2, implementation=implementation, name=name)
  )


def shuffled_echo(dataset, implementation, name):
  return dataset.apply(tfecho.echo(2, implementation=implementation)).apply(
    tfecho.shuffle_after_echo(2, name=name)
  )


def monitored(dataset, implementation, name):
  del implementation
  return dataset.apply(tfecho.monitor(tfecho.Stats(), name=name))


def stalling_echo(dataset, implementation, name):
  del implementation
  return dataset.apply(tfecho.echo_on_stall(2, buffer_size=2, name=name))


each_named = pytest.mark.parametrize(
  "apply, implementation",
  [
    *((echo, implementation) for implementation in IMPLEMENTATIONS),
    *((shuffled_echo, implementation) for implementation in IMPLEMENTATIONS),
    (stalling_echo, "native"),
    (monitored, "native"),
  ],
  indirect=["implementation"],
)


@each_named
def test_the_name_reaches_the_operation(apply, implementation):
  dataset = apply(RANGE(3), implementation, name="my_stage")
  graph = tf.raw_ops.DatasetToGraphV2(
    input_dataset=tf.data.experimental.to_variant(dataset)
  )
  nodes = tf.compat.v1.GraphDef.FromString(graph.numpy()).node
  assert sum(b"my_stage" in node.attr["metadata"].s for node in nodes) == 1


@pytest.mark.parametrize("name", ["", "two words", "2nd", 3])
@each_named
def test_a_name_that_is_none_is_refused(apply, implementation, name):
  with pytest.raises(ValueError, match=f"`name`.*{name!r}"):
    apply(RANGE(3), implementation, name=name)


@each_use
def test_the_inputs_lead_back_to_the_source(use, implementation):
  source = RANGE(3)
  dataset = use.apply(source, implementation)
  while dataset is not source:
    (dataset,) = dataset._inputs()


@each_use
def test_two_iterators_at_once_do_not_disturb_each_other(use, implementation):
  dataset = use.apply(RANGE(7), implementation)
  for emitted in zip(*zip(iter(dataset), iter(dataset))):
    elements = [int(element) for element in emitted]
    assert use.comparable(elements) == use.comparable(use.emits(range(7)))


TALKING = """
import sys
import warnings
import tensorflow as tf
from transformations import USES

def say(text):
  print(">", text, file=sys.stderr, flush=True)

warnings.simplefilter("error")
RANGE = tf.data.Dataset.range
list(RANGE(1))  # What TensorFlow says of the machine, it says here.
for name, use in USES.items():
  if {implementation!r} in use.implementations:
    say(name)
    dataset = use.apply(RANGE(5), {implementation!r})
    list(dataset.batch(2).prefetch(tf.data.AUTOTUNE))
say("end")
"""


def test_nothing_is_said_on_the_way(implementation):
  """In a process of its own: in this one, threads of others may speak."""
  done = forking.run("-c", TALKING.format(implementation=implementation))
  assert done.returncode == 0, done.stderr
  said = re.search(r"^> .*^> end$", done.stderr, re.DOTALL | re.MULTILINE)[0]
  names = [n for n, u in USES.items() if implementation in u.implementations]
  assert said.splitlines() == [f"> {name}" for name in [*names, "end"]]
