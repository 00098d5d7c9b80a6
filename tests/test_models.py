"""Random uses of the transformations, against models in plain Python.

`TFECHO_MODEL_CASES` says how many of each kind.
"""

import collections
import os
import tempfile
from fractions import Fraction

import hypothesis
import tensorflow as tf
from elements import STRUCTURES, plain_elements
from hypothesis import strategies as st
from iterators import resume, save, values, with_options

import tfecho

CASES = int(os.environ.get("TFECHO_MODEL_CASES", 60))
cases = hypothesis.settings(max_examples=CASES)

numbers = st.integers(0, 24)
factors = st.one_of(
  st.integers(1, 6),
  st.fractions(1, 6, max_denominator=12).map(float),
)
breaks = st.lists(st.integers(0, 30), max_size=3)


def emitted(fresh, factor):
  """The model of `echo`: element i as often as the total has grown by then."""
  p, q = Fraction(factor).limit_denominator(10_000).as_integer_ratio()
  return [
    element
    for i, element in enumerate(fresh)
    for _ in range((i + 1) * p // q - i * p // q)
  ]


def with_breaks(make_dataset, breaks, *, symbolic):
  """All elements, with the iterator saved and made anew in between."""
  taken, checkpoint = [], None
  with tempfile.TemporaryDirectory() as folder:
    for i, count in enumerate([*breaks, None]):
      dataset = with_options(make_dataset(), symbolic=symbolic)
      iterator = resume(dataset, checkpoint) if checkpoint else iter(dataset)
      if count is None:
        return taken + values(iterator)
      for element in range(count):
        element = next(iterator, None)
        if element is not None:
          taken.append(int(element))
      checkpoint = save(iterator, f"{folder}/{i}")


@cases
@hypothesis.given(
  n=numbers,
  factor=factors,
  buffer_size=st.integers(-1, 9),
  breaks=breaks,
  symbolic=st.booleans(),
)
def test_an_echo_is_what_its_model_says(
  implementation, n, factor, buffer_size, breaks, symbolic
):
  def make():
    return tf.data.Dataset.range(n).apply(
      tfecho.echo(
        factor, buffer_size=buffer_size, implementation=implementation
      )
    )

  expected = emitted(range(n), factor)
  assert with_breaks(make, breaks, symbolic=symbolic) == expected
  assert make().cardinality() == len(expected)


@cases
@hypothesis.given(
  n=numbers,
  factor=factors,
  buffer_size=st.integers(1, 30),
  share=st.floats(0, 1),
  seed=st.integers(0, 2**62),
  breaks=breaks,
)
def test_a_shuffle_keeps_counts_and_distances_and_goes_on_as_it_would_have(
  implementation, n, factor, buffer_size, share, seed, breaks
):
  native = implementation == "native"
  distance = max(1, int(share * (buffer_size // 2))) if native else 1

  def make():
    data = tf.data.Dataset.range(n)
    data = data.apply(tfecho.echo(factor, implementation=implementation))
    return data.apply(
      tfecho.shuffle_after_echo(
        buffer_size, min_distance=distance, seed=seed
      )
    )

  whole = values(with_options(make()))
  assert with_breaks(make, breaks, symbolic=False) == whole
  assert collections.Counter(whole) == collections.Counter(
    emitted(range(n), factor)
  )
  if buffer_size >= 4 * distance:
    assert no_element_is_nearer(whole[: -4 * distance or None], distance)


def no_element_is_nearer(elements, distance):
  last = {}
  for position, element in enumerate(elements):
    if position - last.get(element, -distance) < distance:
      return False
    last[element] = position
  return True


@cases
@hypothesis.given(
  n=numbers,
  max_factor=st.integers(1, 5),
  buffer_size=st.integers(1, 8),
  repeat_size=st.integers(1, 8),
  warmup=st.integers(0, 12),
  breaks=breaks,
)
def test_an_echo_on_stall_keeps_its_promises_over_any_breaks(
  native_ops, n, max_factor, buffer_size, repeat_size, warmup, breaks
):
  def make():
    return tf.data.Dataset.range(n).apply(
      tfecho.echo_on_stall(
        max_factor,
        buffer_size=buffer_size,
        repeat_size=repeat_size,
        warmup=warmup,
      )
    )

  taken = with_breaks(make, breaks, symbolic=False)
  assert list(dict.fromkeys(taken)) == list(range(n))  # in order at first
  assert max(collections.Counter(taken).values(), default=0) <= max_factor
  start = min(warmup, n)
  assert taken[:start] == list(range(start))


@hypothesis.settings(max_examples=max(CASES // 2, 1))
@hypothesis.given(
  structure=st.sampled_from(sorted(STRUCTURES)), factor=factors
)
def test_elements_of_any_structure_are_echoed_whole(
  implementation, structure, factor
):
  dataset = STRUCTURES[structure]()
  echoed = dataset.apply(
    tfecho.echo(factor, implementation=implementation)
  )
  assert echoed.element_spec == dataset.element_spec
  assert plain_elements(echoed) == emitted(plain_elements(dataset), factor)
