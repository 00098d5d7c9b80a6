"""echo: every element several times in a row.

    dataset = dataset.map(decode)
    dataset = dataset.apply(tfecho.echo(4))   # decode runs a quarter as often

The native implementation is one op that hands out the same tensors again. The
graph implementation says the same with `flat_map`, for places that can't load
the op, and emits the same sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfecho import native
from tfecho.checks import check_name, checked_int
from tfecho.datasets import (
  EchoedDataset,
  element_bytes,
  flat_components,
  flat_structure,
  op_metadata,
)
from tfecho.factors import MAX_VARIABLE, Factor
from tfecho.stats import Stats, check_stats, count_read

IMPLEMENTATIONS = ("auto", "native", "graph")

# Of small elements this many are read ahead: TensorFlow's tuning would begin
# with a few, and waking a thread for each of them costs more than they do.
_SMALL_BYTES = 4096
_SMALL_AHEAD = 64


def echo(
  factor: Any,
  *,
  rounding: str = "even",
  seed: int | None = None,
  buffer_size: int = tf.data.AUTOTUNE,
  stats: Stats | None = None,
  implementation: str = "auto",
  name: str | None = None,
) -> Callable[[tf.data.Dataset], tf.data.Dataset]:
  """Emits every element `factor` times in a row.

  What stands upstream runs once per fresh element, whatever the factor is, and
  works ahead while the copies are used. Copies share memory. The structure of
  the elements stays as it is.

  >>> dataset = tf.data.Dataset.range(3)
  >>> [int(x) for x in dataset.apply(tfecho.echo(2))]
  [0, 0, 1, 1, 2, 2]
  >>> [int(x) for x in dataset.apply(tfecho.echo(1.5))]
  [0, 1, 1, 2]

  Copies that follow each other end up in the same batch. Unless the echo stands
  behind `batch`, put `tfecho.shuffle_after_echo` right behind it.

  `echo` before `cache()` stores every copy; put it behind.

  An upstream error surfaces once, at its place. Natively the stream then goes
  on with the next element, so that `ignore_errors` may stand behind the echo.
  The graph implementation announces its number of elements by
  `assert_cardinality`, to which an element that failed is one too few: with it,
  `ignore_errors` belongs in front.

  The position of an iterator, between two copies too, can be saved and
  restored exactly; from a symbolic checkpoint not always once a stage between
  the echo and `batch` has failed, since TensorFlow drops what it was told in
  that batch. A checkpoint of another factor, rounding or structure is refused.
  The graph implementation refuses other structures, but goes on with another
  whole factor, or fraction, until finite data ends with an error: the stages
  that it is made of don't keep their arguments. Random access
  (`tf.data.experimental.at`, global shuffling) is not supported.

  Between workers, auto-sharding by file finds the files through the native op
  as if it were not there. Through the graph implementation it deals out records
  instead, all of which every worker reads. With a factor that is no constant
  whole number it finds nothing there: FILE fails, and AUTO deals out the copies
  of one element to different workers. Workers of a tf.data service have to call
  `tfecho.native.load()`, can't read a variable, and share their input
  dynamically only with the native op.

  Args:
    factor: how often each element is emitted, at least 1. A whole number; or
      any other one, taken as the nearest fraction p/q with q <= 10,000; or a
      scalar `tf.Variable` of an integer or floating-point type, best made by
      `tfecho.factor_variable`, which is read for every fresh element (in steps
      of 1/10,000), so that a callback can change it. Its value is no part of
      the iterator's state: save it beside the iterator. A pipeline with a
      variable can be saved natively; with the graph implementation it needs
      `options.experimental_external_state_policy = IGNORE`. While a variable
      is below 1, every request fails, and no element is lost.
    rounding: what a factor between two whole numbers does. "even": element i is
      emitted floor((i + 1) p / q) - floor(i p / q) times, so n elements become
      exactly floor(n p / q). In a fixed upstream order this favours the same
      elements in every epoch. "random": one more copy with the probability of
      the fraction, drawn anew in every epoch.
    seed: makes random rounding reproducible.
    buffer_size: how many fresh elements are read ahead while copies are used;
      0 for none. `AUTOTUNE` is 64 for elements that are known to be small, and
      else leaves it to TensorFlow.
    stats: counts fresh elements and copies. Native only.
    implementation: "native", "graph", or "auto", which takes the native op
      where it can be loaded or built.
    name: name of the operation.

  Returns:
    A function to pass to `tf.data.Dataset.apply`. The number of elements is
    known if that of its input is and neither a variable nor chance decide.

  Raises:
    ValueError: if an argument is not as described.
    tfecho.native.NativeUnavailableError: if "native" can't be had.

  Reference:
    Choi, Passos, Shallue, Dahl, "Faster Neural Network Training with Data
    Echoing", arXiv 1907.05550.
  """
  parsed = Factor.parse(factor, rounding=rounding, seed=seed)
  check_implementation(implementation)
  # That of AUTOTUNE is -1.
  buffer_size = checked_int("buffer_size", buffer_size, at_least=-1)
  check_name(name)
  if stats is not None:
    check_stats(stats)
  library = _library(implementation, stats)

  def _apply_fn(dataset: tf.data.Dataset) -> tf.data.Dataset:
    if buffer_size == 0:
      return EchoDataset(dataset, parsed, library, stats, name)
    read = count_read(dataset, stats).prefetch(_num_ahead(dataset, buffer_size))
    return EchoDataset(
      read, parsed, library, stats, name, is_read_counted=True
    )

  return _apply_fn


class EchoDataset(EchoedDataset):
  """The result of `echo`.

  `shuffle_after_echo` builds on what it was made from.

  Attributes:
    fresh: dataset of the fresh elements.
    factor: checked echoing factor.
    library: the native library, or None for the graph implementation.
    stats: where to count, or None.
    is_read_counted: whether something upstream counts what is read.
  """

  def __init__(
    self,
    fresh: tf.data.Dataset,
    factor: Factor,
    library: native.Library | None,
    stats: Stats | None,
    name: str | None,
    *,
    is_read_counted: bool = False,
  ):
    self.fresh = fresh
    self.factor = factor
    self.library = library
    self.stats = stats
    self.is_read_counted = is_read_counted
    if library is None:
      variant = _graph_variant(fresh, factor, name)
    else:
      variant = _native_variant(self, library, name)
    super().__init__(fresh, variant)

  def op_arguments(self) -> dict[str, Any]:
    """Returns what tells a native op about this echo, its input excepted."""
    return dict(
      stats=0 if self.stats is None else self.stats.id,
      counts_read=not self.is_read_counted,
      **self.factor.op_inputs(),
      **flat_structure(self.fresh),
    )


def _num_ahead(dataset: tf.data.Dataset, buffer_size: int) -> int:
  size = element_bytes(dataset.element_spec)
  if buffer_size != tf.data.AUTOTUNE or size is None or size > _SMALL_BYTES:
    return buffer_size
  return _SMALL_AHEAD


def check_implementation(implementation: Any) -> None:
  """Raises ValueError if `implementation` is none."""
  if implementation not in IMPLEMENTATIONS:
    raise ValueError(
      f"`implementation` must be one of {list(IMPLEMENTATIONS)}, got"
      f" {implementation!r}"
    )


def _library(
  implementation: str, stats: Stats | None
) -> native.Library | None:
  if implementation == "native":
    return native.load()
  if implementation == "auto":
    return native.try_load()
  if stats is not None:
    raise ValueError(
      '`stats` are counted by the native op: they need `implementation`="auto"'
      ' or "native", got "graph"'
    )
  return None


def _native_variant(
  echo: EchoDataset, library: native.Library, name: str | None
) -> tf.Tensor:
  return library.ops.repeat_dataset_v190705550(
    tf.data.experimental.to_variant(echo.fresh),
    metadata=op_metadata(name),
    **echo.op_arguments(),
  )


def _graph_variant(
  fresh: tf.data.Dataset, factor: Factor, name: str | None
) -> tf.Tensor:
  flat = flat_components(fresh)
  if factor.variable is None and factor.constant.denominator == 1:
    echoed = _repeat_wholly(flat, factor.constant.numerator, name)
  else:
    echoed = _repeat_varyingly(flat, factor, name)
  return tf.data.experimental.to_variant(
    _with_cardinality(echoed, factor, fresh.cardinality())
  )


def _repeat_wholly(
  flat: tf.data.Dataset, copies: int, name: str | None
) -> tf.data.Dataset:
  return flat.flat_map(lambda *element: _copies(element, copies), name=name)


def _repeat_varyingly(
  flat: tf.data.Dataset, factor: Factor, name: str | None
) -> tf.data.Dataset:
  if factor.variable is not None:
    flat = flat.flat_map(lambda *element: _once_valid(element, factor.variable))

  def count(remainder: tf.Tensor, element: Any, draw: Any = 0) -> Any:
    remainder, copies = factor.next_copies(remainder, draw)
    return remainder, (element, copies)

  # Not by `enumerate`, which counts an element that failed upstream as well.
  start = tf.constant(0, tf.int64)
  if factor.random:
    pairs = tf.data.Dataset.zip((flat, factor.draws()))
    counted = pairs.scan(start, lambda state, pair: count(state, *pair))
  else:
    counted = flat.scan(start, count)
  return counted.flat_map(_copies, name=name)


def _copies(element: Any, copies: int | tf.Tensor) -> tf.data.Dataset:
  return tf.data.Dataset.from_tensors(element).repeat(copies)


def _once_valid(element: Any, variable: tf.Variable) -> tf.data.Dataset:
  """Yields `element`, after an error for every request before it may."""

  def is_invalid(_: tf.Tensor) -> tf.Tensor:
    value = variable.read_value()
    limit = tf.cast(MAX_VARIABLE, tf.float64)
    return ~((value >= 1) & (tf.cast(value, tf.float64) <= limit))

  def refuse(_: tf.Tensor) -> Any:
    text = "`factor`: the variable must be at least 1, but is"
    with tf.control_dependencies(
      [tf.debugging.Assert(False, [text, variable.read_value()])]
    ):
      return tf.nest.map_structure(tf.identity, element)

  refusals = _zeros().take_while(is_invalid).map(refuse)
  return refusals.concatenate(tf.data.Dataset.from_tensors(element))


def _zeros() -> tf.data.Dataset:
  return tf.data.Dataset.range(1).repeat()


def _with_cardinality(
  echoed: tf.data.Dataset, factor: Factor, fresh: tf.Tensor
) -> tf.data.Dataset:
  known = tf.get_static_value(fresh)
  if known is None:  # Inside a `tf.function`.
    return echoed
  cardinality = factor.cardinality(int(known))
  if cardinality == tf.data.UNKNOWN_CARDINALITY:
    return echoed
  return echoed.apply(tf.data.experimental.assert_cardinality(cardinality))
