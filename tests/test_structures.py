"""Every public transformation on every kind of element that tf.data has.

What a transformation does to its elements as a whole is tested beside it. Here
is tested that it makes no difference what the elements are.
"""

import collections

import pytest
import tensorflow as tf
from elements import STRUCTURES, plain_elements
from transformations import (
  IMPLEMENTATIONS,
  USES,
  each_use,
  echo,
  public_transformations,
)

FACTORS = {
  "whole": echo(2),
  "even": echo(2.5),
  "random": echo(1.5, rounding="random", seed=7),
}

each_structure = pytest.mark.parametrize("structure", STRUCTURES)


def spec_of_arguments(dataset):
  """Returns what a function that `dataset` is mapped with is called with."""
  types = []

  def note(*args):
    types.append(tf.nest.map_structure(type, args))
    return 0

  dataset.map(note)
  return types


def test_every_public_transformation_has_a_use_here():
  assert public_transformations() == sorted({use.name for use in USES.values()})


@each_structure
@each_use
def test_the_structure_stays_as_it_is(use, implementation, structure):
  dataset = STRUCTURES[structure]()
  transformed = use.apply(dataset, implementation)

  assert transformed.element_spec == dataset.element_spec
  tf.nest.assert_same_structure(next(iter(transformed)), next(iter(dataset)))
  assert spec_of_arguments(transformed) == spec_of_arguments(dataset)


@each_structure
@each_use
def test_the_elements_are_those_of_the_input(use, implementation, structure):
  dataset = STRUCTURES[structure]()
  emitted = plain_elements(use.apply(dataset, implementation))

  expected = use.emits(plain_elements(dataset))
  assert use.comparable(emitted) == use.comparable(expected)


@each_structure
@pytest.mark.parametrize("factor", FACTORS)
def test_native_and_graph_echo_the_same_sequence(
  native_ops, structure, factor
):
  dataset = STRUCTURES[structure]().repeat(4)
  native, graph = (
    FACTORS[factor](dataset, implementation)
    for implementation in IMPLEMENTATIONS
  )
  assert plain_elements(native) == plain_elements(graph)


def test_the_structures_have_elements_that_differ():
  for name, dataset in STRUCTURES.items():
    counts = collections.Counter(map(str, plain_elements(dataset())))
    assert list(counts.values()) == [1, 1, 1], name
