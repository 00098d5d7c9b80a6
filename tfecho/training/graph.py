"""The graph of a Keras model, read from its configuration.

    graph = read(model)
    for node in graph.nodes:              # what a node needs comes before it
      print(node.operation.name, node.inputs)

The configuration is the one public description of the graph that both Keras 3
and Keras 2.15 give; this module is the only place that knows its two dialects.
"""

from __future__ import annotations

import dataclasses
import graphlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import keras


class Ref(NamedTuple):
  """One tensor: an output of a call of an operation, each counted from 0."""

  operation: str
  call: int
  output: int


@dataclasses.dataclass(frozen=True)
class Node:
  """One call of a layer, or of another operation.

  Attributes:
    operation: What is called: a layer, a nested model, or an operation such as
      the addition in `x + y`.
    call: Which call of this operation it is, from 0.
    args: Positional arguments; a `Ref` stands where a tensor is passed.
    kwargs: Keyword arguments, likewise.
  """

  operation: Any
  call: int
  args: tuple[Any, ...]
  kwargs: dict[str, Any]

  @property
  def key(self) -> tuple[str, int]:
    """What the `Ref`s to its outputs begin with."""
    return self.operation.name, self.call

  @property
  def inputs(self) -> list[Ref]:
    """The tensors that are passed, in the order of Keras."""
    return list(leaves((self.args, self.kwargs), Ref))


@dataclasses.dataclass(frozen=True)
class Graph:
  """A model as calls of operations.

  Attributes:
    input_configs: By name, the configuration of each `InputLayer`.
    nodes: The calls, each after those that it needs.
    inputs: A `Ref`, or a list, tuple or dict of them, as the model takes them.
    outputs: The same, as the model returns them.
  """

  input_configs: dict[str, dict[str, Any]]
  nodes: list[Node]
  inputs: Any
  outputs: Any


def read(model: keras.Model) -> Graph:
  """Returns the graph of a functional or Sequential model.

  Raises:
    ValueError: If `model` has no graph that could be read: it has a `call` of
      its own, or is Sequential and not built, or a layer has no configuration.
  """
  if not has_graph(model):
    raise ValueError(
      f"model {model.name!r} ({type(model).__name__}) has no graph that could"
      " be looked into: build it with the functional API, or give a Sequential"
      " model a `keras.Input`"
    )
  config = _config(model)
  if isinstance(model, keras.Sequential):
    return _read_sequential(model, config)
  if "input_layers" not in config:
    raise ValueError(
      f"model {model.name!r} ({type(model).__name__}) has a `get_config()`"
      " without its graph: a subclass must be made from `inputs` and `outputs`"
    )
  return _read_functional(model, config)


def has_graph(operation: Any) -> bool:
  """Whether an operation is a functional or Sequential model, and built."""
  if not isinstance(operation, keras.Model):
    return False
  try:
    return bool(getattr(operation, "outputs", None))
  except ValueError:  # Keras 3.5, of a Sequential model that is not built
    return False


def _config(model: keras.Model) -> dict[str, Any]:
  """The configuration; an error that names the layer that has none."""
  for layer in [*model.layers, model]:
    try:
      config = layer.get_config()
    except NotImplementedError as error:
      raise ValueError(
        f"layer {layer.name!r} ({type(layer).__name__}) has no `get_config()`,"
        " without which it can't be made anew"
      ) from error
  return config


def leaves(structure: Any, kind: type | None = None) -> Iterator[Any]:
  """The values in nested lists, tuples and dicts, in the order of Keras.

  Args:
    structure: What to look through.
    kind: Only values of this type, which may be a tuple itself; all if None.
  """
  if kind and isinstance(structure, kind):
    yield structure
  elif isinstance(structure, dict):
    for key in sorted(structure):
      yield from leaves(structure[key], kind)
  elif isinstance(structure, (list, tuple)):
    for item in structure:
      yield from leaves(item, kind)
  elif kind is None:
    yield structure


def replace(structure: Any, kind: type, function: Callable[[Any], Any]) -> Any:
  """The structure with `function` applied to its `leaves` of a type."""
  if isinstance(structure, kind):
    return function(structure)
  if isinstance(structure, dict):
    return {k: replace(structure[k], kind, function) for k in sorted(structure)}
  if isinstance(structure, (list, tuple)):
    return type(structure)(replace(v, kind, function) for v in structure)
  return structure


# --- Sequential -------------------------------------------------------------


def _read_sequential(model: keras.Sequential, config: dict[str, Any]) -> Graph:
  input_config = config["layers"][0]["config"]
  ref = inputs = Ref(input_config["name"], 0, 0)
  nodes = []
  for layer in model.layers:
    nodes.append(Node(layer, 0, (ref,), {}))
    ref = Ref(layer.name, 0, 0)
  return Graph({inputs.operation: input_config}, nodes, inputs, ref)


# --- Functional -------------------------------------------------------------


def _read_functional(model: keras.Model, config: dict[str, Any]) -> Graph:
  # Keras 3 leaves what is no layer, such as `x + y`, out of `layers`.
  operations = {
    operation.name: operation
    for operation in getattr(model, "operations", model.layers)
  }
  input_configs, nodes = {}, []
  for entry in config["layers"]:
    name = entry["name"]
    if entry["class_name"] == "InputLayer":
      input_configs[name] = entry["config"]
      continue
    for call, data in enumerate(entry["inbound_nodes"]):
      args, kwargs = _read_call(data, operations)
      nodes.append(Node(operations[name], call, args, kwargs))
  inputs = _read_refs(config["input_layers"], operations)
  outputs = _read_refs(config["output_layers"], operations)
  return _normalized(Graph(input_configs, nodes, inputs, outputs))


def _read_call(data: Any, operations: dict[str, Any]) -> tuple[tuple, dict]:
  """Args and kwargs of one call."""
  if isinstance(data, dict) and set(data) == {"args", "kwargs"}:  # Keras 3
    return _from_keras3(tuple(data["args"])), _from_keras3(data["kwargs"])
  return _from_keras2(data, operations)


def _from_keras3(data: Any) -> Any:
  """Tensors are dicts of a class of their own; so is all that is not JSON."""
  if isinstance(data, dict) and "class_name" in data:
    if data["class_name"] == "__keras_tensor__":
      return Ref(*data["config"]["keras_history"])
    return keras.saving.deserialize_keras_object(data)
  if isinstance(data, dict):
    return {key: _from_keras3(value) for key, value in data.items()}
  if isinstance(data, (list, tuple)):
    return type(data)(_from_keras3(value) for value in data)
  return data


def _from_keras2(data: Any, operations: dict[str, Any]) -> tuple[tuple, dict]:
  """A tensor of the first argument is [name, call, output, kwargs].

  The keyword arguments are the same beside each of them. A first argument that
  is no tensor takes the place of `output`, after a name that no layer has.
  """
  kwargs: dict[str, Any] = {}

  def read(value: Any) -> Any:
    if _is_keras2_leaf(value, {*operations, "_CONSTANT_VALUE"}):
      name, call, output, *rest = value
      kwargs.update(*rest)
      return output if name == "_CONSTANT_VALUE" else Ref(name, call, output)
    if isinstance(value, dict):
      return {key: read(item) for key, item in value.items()}
    return [read(item) for item in value]

  argument = read(data)
  if isinstance(argument, list) and len(argument) == 1:
    (argument,) = argument
  return (argument,), _read_refs(kwargs, operations)


def _is_keras2_leaf(value: Any, names: Any) -> bool:
  return (
    isinstance(value, (list, tuple))
    and len(value) in (3, 4)
    and isinstance(value[0], str)
    and value[0] in names
  )


def _read_refs(data: Any, operations: dict[str, Any]) -> Any:
  """Replaces [name, call, output] wherever it stands."""
  if _is_keras2_leaf(data, operations) and len(data) == 3:
    return Ref(*data)
  if isinstance(data, dict):
    return {key: _read_refs(value, operations) for key, value in data.items()}
  if isinstance(data, (list, tuple)):
    return type(data)(_read_refs(value, operations) for value in data)
  return data


def _normalized(graph: Graph) -> Graph:
  """Counts calls from 0, and sorts the nodes.

  Keras 2 counts the call that made a nested model before those of its use.
  Every call is needed by something, so the least number in use is the first.
  """
  used = [*(ref for node in graph.nodes for ref in node.inputs)]
  used += leaves((graph.inputs, graph.outputs), Ref)
  first = {name: 0 for name in graph.input_configs}
  for name, call, _ in used:
    first[name] = min(call, first.get(name, call))

  def counted(structure: Any) -> Any:
    return replace(
      structure, Ref, lambda r: r._replace(call=r.call - first[r.operation])
    )

  nodes = [
    dataclasses.replace(n, args=counted(n.args), kwargs=counted(n.kwargs))
    for n in graph.nodes
  ]
  return Graph(
    graph.input_configs,
    _sorted(nodes),
    counted(graph.inputs),
    counted(graph.outputs),
  )


def _sorted(nodes: list[Node]) -> list[Node]:
  by_key = {node.key: node for node in nodes}
  needs = {
    key: [ref[:2] for ref in node.inputs if ref[:2] in by_key]
    for key, node in by_key.items()
  }
  order = graphlib.TopologicalSorter(needs).static_order()
  return [by_key[key] for key in order]
