"""Every public transformation, applied with arguments that show what it does.

  @each_use
  def test_the_number_is_known(use, implementation):
    dataset = use.apply(tf.data.Dataset.range(3), implementation)

A transformation is a public function that returns one, so that a new one is
found by itself; a test then asks for a use of it.
"""

import inspect
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import pytest
import tensorflow as tf

import tfecho

TRANSFORMATION = "Callable[[tf.data.Dataset], tf.data.Dataset]"
IMPLEMENTATIONS = ("native", "graph")


class Use(NamedTuple):
  """One way to use a transformation.

  Attributes:
    name: public name of the transformation.
    apply: function of a dataset and an implementation.
    factor: how often an element is emitted on average.
    in_order: whether elements stay in their order.
    implementations: those that have it.
  """

  name: str
  apply: Callable[[tf.data.Dataset, str], tf.data.Dataset]
  factor: Fraction = Fraction(1)
  in_order: bool = True
  implementations: tuple[str, ...] = IMPLEMENTATIONS

  def emits(self, fresh):
    """Returns the list of elements that the list `fresh` becomes."""
    p, q = self.factor.as_integer_ratio()
    return [
      element
      for i, element in enumerate(fresh)
      for _ in range((i + 1) * p // q - i * p // q)
    ]

  def comparable(self, elements):
    """Returns a list of `elements`, sorted where chance decides the order."""
    return list(elements) if self.in_order else sorted(elements, key=str)


def echo(*args, **kwargs):
  """Returns what `Use.apply` may be, for an `echo` with these arguments."""

  def apply(dataset, implementation):
    return dataset.apply(
      tfecho.echo(*args, implementation=implementation, **kwargs)
    )

  return apply


def shuffled_echo(factor, *args, **kwargs):
  """The same for a `shuffle_after_echo` with these arguments."""

  def apply(dataset, implementation):
    dataset = echo(factor)(dataset, implementation)
    return dataset.apply(tfecho.shuffle_after_echo(*args, **kwargs))

  return apply


def echo_by_variable(value):
  """The same for an `echo` by a variable."""

  def apply(dataset, implementation):
    return echo(tfecho.factor_variable(value))(dataset, implementation)

  return apply


def monitored(dataset, implementation):
  """Applies `monitor`."""
  del implementation
  return dataset.apply(tfecho.monitor(tfecho.Stats()))


def stalling_echo(dataset, implementation):
  """Applies an `echo_on_stall` whose warm-up outlasts a short input."""
  del implementation
  return dataset.apply(tfecho.echo_on_stall(3, buffer_size=8, warmup=100))


def counted_echo(dataset, implementation):
  """Applies an `echo` that counts."""
  del implementation
  return dataset.apply(tfecho.echo(2, stats=tfecho.Stats()))


USES = {
  "echo": Use("echo", echo(2), Fraction(2)),
  "echo by a fraction": Use("echo", echo(2.5), Fraction(5, 2)),
  "echo by a variable": Use("echo", echo_by_variable(3), Fraction(3)),
  "echo with statistics": Use(
    "echo", counted_echo, Fraction(2), implementations=("native",)
  ),
  "shuffle_after_echo": Use(
    "shuffle_after_echo", shuffled_echo(2, 2), Fraction(2), in_order=False
  ),
  "shuffle_after_echo at a distance": Use(
    "shuffle_after_echo",
    shuffled_echo(1.5, 4, min_distance=2),
    Fraction(3, 2),
    in_order=False,
    implementations=("native",),
  ),
  "echo_on_stall": Use(
    "echo_on_stall", stalling_echo, implementations=("native",)
  ),
  "monitor": Use("monitor", monitored, implementations=("native",)),
}


def each_of(uses, implementations=IMPLEMENTATIONS):
  """Returns a decorator: a test for each use, in each implementation."""
  return pytest.mark.parametrize(
    "use, implementation",
    [
      pytest.param(use, implementation, id=f"{name}-{implementation}")
      for name, use in uses.items()
      for implementation in use.implementations
      if implementation in implementations
    ],
    indirect=["implementation"],
  )


each_use = each_of(USES)
each_native_use = each_of(USES, ["native"])


def public_transformations():
  """Returns the names of the public functions that return a transformation."""
  return [
    name
    for name in tfecho.__all__
    if inspect.isfunction(getattr(tfecho, name))
    and inspect.signature(getattr(tfecho, name)).return_annotation
    == TRANSFORMATION
  ]
