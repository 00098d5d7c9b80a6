"""Models in channels_first, converted to compute the same in channels_last.

```python
import keras
from tfecho.training import check_layout, to_channels_last

model = keras.Sequential([
  keras.Input((3, 8, 8)),
  keras.layers.Conv2D(4, 3, data_format="channels_first"),
  keras.layers.Flatten(),
  keras.layers.Dense(2),
])
model = to_channels_last(model)         # takes images of shape (8, 8, 3)
check_layout(model)
```

In channels_last (NHWC) the values of all channels at one position lie side by
side, which is what fast convolutions work on: a library that is handed
channels_first transposes around every one of them, or computes it slowly.

How: every tensor of the old model has a counterpart in the new one, with its
axes in the same order or with the channels last. Which of the two is decided
once, backwards from the layers that need channels_last; then the model is built
anew, layer by layer in the order of computation. `layout_rules` has the layers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import keras

from tfecho.training import graph, layout_rules
from tfecho.training.graph import Graph, Node, Ref
from tfecho.training.layers import all_layers
from tfecho.training.layout_rules import Call, Plan
from tfecho.training.orders import (
  LAST,
  ORIGINAL,
  Order,
  Tensor,
  channels_last,
  reordered,
)
from tfecho.training.precision import policy_scope


def to_channels_last(
  model: keras.Model, *, keep_input_layout: bool = False
) -> keras.Model:
  """Returns a model that computes the same in channels_last.

  Layers keep their names and configurations but for the layout, weights are
  copied. Where a `Dense` follows a flattened image, the rows of its kernel are
  permuted; so are weights that belong to positions and channels at once. The
  model is not compiled.

  Convertible are functional and Sequential models, nested ones too, of Keras'
  layers, and of layers of one's own that have a `data_format`. Layers for which
  an axis is just an axis, such as `Dense` on an image, get it in the old order.

  ```python
  import keras
  from tfecho.training import to_channels_last

  image = keras.Input((3, 8, 8))
  edges = keras.layers.Conv2D(2, 3, data_format="channels_first")(image)
  model = keras.Model(image, edges)
  assert to_channels_last(model).output_shape == (None, 6, 6, 2)
  same = to_channels_last(model, keep_input_layout=True)
  assert same.output_shape == (None, 2, 6, 6)
  ```

  Args:
    model: A functional or Sequential model.
    keep_input_layout: Whether the new model takes its inputs, and gives its
      outputs, in the layout of the old one, transposed once at either end. By
      default, inputs that lead to layers in channels_first, and outputs that
      come from them with their axes in place, are in channels_last as well.

  Returns:
    A functional model, even where `model` is Sequential.

  Raises:
    ValueError: If something can't be converted; it names the layer and says
      why.
  """
  if not isinstance(model, keras.Model):
    raise ValueError(f"`model` must be a keras.Model, got {model!r}")
  new = _Conversion(model).outermost(keep_input_layout=keep_input_layout)
  check_layout(new)
  return new


def check_layout(model: keras.Model) -> None:
  """Raises an error if a layer still works in channels_first.

  It looks at every layer, also inside of nested models, wrappers and layers of
  one's own: at its `data_format`, and at the axis of normalizations whose axis
  is that of the channels.

  ```python
  import keras
  from tfecho.training import check_layout

  pool = keras.layers.MaxPooling2D(data_format="channels_first", name="pool")
  try:
    check_layout(keras.Sequential([keras.Input((3, 8, 8)), pool]))
  except ValueError as error:
    assert "'pool'" in str(error)
  ```

  Args:
    model: A built model of any kind.

  Raises:
    ValueError: If there are such layers; it names them.
  """
  if not isinstance(model, keras.Model):
    raise ValueError(f"`model` must be a keras.Model, got {model!r}")
  found = [x for x in all_layers(model) if layout_rules.is_channels_first(x)]
  if found:
    names = ", ".join(f"{x.name!r} ({type(x).__name__})" for x in found)
    raise ValueError(
      f"`model` {model.name!r} works in channels_first in {names}: convert it"
      " with `to_channels_last`, or build it with"
      " data_format='channels_last' and axis=-1"
    )


class _Conversion:
  """Converts one model, with all that is nested in it.

  Layers and nested models that are used in several places are converted once,
  for the first of them; the others adapt.
  """

  def __init__(self, model: keras.Model):
    self._model = model
    self._graphs: dict[int, Graph] = {}
    # By model: the tensors in it that are channels_last where they are made.
    self._wanted: dict[int, set[Ref]] = {}
    self._plans: dict[int, Plan] = {}

  def outermost(self, *, keep_input_layout: bool) -> keras.Model:
    """Returns the new model."""
    self._find_wanted(self._model, ())

    def final_order(tensor: Tensor) -> Order:
      stays_last = tensor.order == LAST and not keep_input_layout
      return LAST if stays_last else ORIGINAL

    return self._convert(
      self._model, final_order, keep_input_layout=keep_input_layout
    ).layer

  # --- Where channels_last begins -------------------------------------------

  def _graph(self, model: keras.Model) -> Graph:
    if id(model) not in self._graphs:
      self._graphs[id(model)] = graph.read(model)
    return self._graphs[id(model)]

  def _find_wanted(self, model: keras.Model, outputs: Any) -> list[bool]:
    """Which inputs lead to layers that need channels_last.

    Args:
      model: The model to go through, backwards.
      outputs: Indices of the outputs that lead to such a layer.
    """
    read = self._graph(model)
    wanted = self._wanted.setdefault(id(model), set())
    made = list(graph.leaves(read.outputs, Ref))
    wanted.update(made[index] for index in outputs)
    for node in reversed(read.nodes):
      wanted.update(self._wanted_inputs(node, wanted))
    return [ref in wanted for ref in graph.leaves(read.inputs, Ref)]

  def _wanted_inputs(self, node: Node, wanted: set[Ref]) -> list[Ref]:
    outputs = {ref.output for ref in wanted if ref[:2] == node.key}
    if graph.has_graph(node.operation):
      flags = self._find_wanted(node.operation, outputs)
      return list(itertools.compress(node.inputs, flags))
    if layout_rules.wants_channels_last(node.operation):
      return node.inputs
    return node.inputs if outputs and layout_rules.lets_pass(node) else []

  # --- The new model --------------------------------------------------------

  def _convert(
    self,
    model: keras.Model,
    final_order: Callable[[Tensor], Order],
    *,
    keep_input_layout: bool = False,
  ) -> Plan:
    """Returns the plan for a model, in which its layers have their weights."""
    read = self._graph(model)
    with policy_scope(model.dtype_policy):
      tensors = _Tensors()
      inputs = self._add_inputs(model, tensors, keep=keep_input_layout)
      for node in read.nodes:
        self._add_call(node, tensors)

      def output(ref: Ref) -> Tensor:
        return tensors.reordered(tensors[ref], final_order(tensors[ref]))

      new = _class_for(model)(
        graph.replace(read.inputs, Ref, lambda ref: inputs[ref].value),
        graph.replace(read.outputs, Ref, lambda ref: output(ref).value),
        name=model.name,
      )
    if not model.trainable:
      new.trainable = False
    return Plan(
      new,
      [tensor.order for tensor in inputs.values()],
      [output(ref).order for ref in graph.leaves(read.outputs, Ref)],
    )

  def _add_inputs(
    self, model: keras.Model, tensors: _Tensors, *, keep: bool
  ) -> dict[Ref, Tensor]:
    """Adds the inputs, and returns them as the model takes them."""
    read, wanted = self._graph(model), self._wanted[id(model)]
    inputs = {}
    for ref in graph.leaves(read.inputs, Ref):
      order = LAST if ref in wanted else ORIGINAL
      config = read.input_configs[ref.operation]
      inputs[ref] = _input(config, ORIGINAL if keep else order)
      tensors[ref] = tensors.reordered(inputs[ref], order)
    return inputs

  def _add_call(self, node: Node, tensors: _Tensors) -> None:
    """Calls the new layer as the old one was called."""
    old, is_new = node.operation, id(node.operation) not in self._plans
    call = Call(*graph.replace((node.args, node.kwargs), Ref, tensors.get))
    plan = self._plan(old, call)
    takes = plan.takes or layout_rules.common_order(old, call.inputs)
    orders = takes if isinstance(takes, list) else [takes] * len(call.inputs)
    given = iter(map(tensors.reordered, call.inputs, orders))
    args, kwargs = graph.replace(
      (call.args, call.kwargs), Tensor, lambda _: next(given).value
    )
    outputs = list(graph.leaves(plan.layer(*args, **kwargs)))
    if is_new and not graph.has_graph(old):
      _carry_weights(old, plan)
    for index, value in enumerate(outputs):
      order = plan.gives[index] if plan.gives else _following(takes, value)
      ref = Ref(*node.key, index)
      tensors[ref] = Tensor(value, order, _name(ref))
      if plan.restores:
        tensors[ref] = tensors.reordered(tensors[ref], LAST)

  def _plan(self, operation: Any, call: Call) -> Plan:
    if id(operation) not in self._plans:
      if graph.has_graph(operation):
        plan = self._convert(operation, lambda tensor: tensor.order)
      else:
        plan = layout_rules.rule_of(operation)(operation, call)
      self._plans[id(operation)] = plan
    return self._plans[id(operation)]


class _Tensors(dict[Ref, Tensor]):
  """The tensors of a new model; each is reordered once, whoever asks."""

  def __init__(self) -> None:
    super().__init__()
    self._made: dict[tuple[str, Order], Tensor] = {}

  def reordered(self, tensor: Tensor, order: Order) -> Tensor:
    self._made[tensor.name, tensor.order] = tensor
    if (tensor.name, order) not in self._made:
      self._made[tensor.name, order] = reordered(tensor, order)
    return self._made[tensor.name, order]


def _input(config: dict[str, Any], order: Order) -> Tensor:
  """A new input in an order."""
  key = "batch_shape" if "batch_shape" in config else "batch_input_shape"
  shape = tuple(config[key])
  if order == LAST and len(shape) > 2:
    config = {**config, key: channels_last(shape)}
  else:
    order = ORIGINAL
  layer = keras.layers.InputLayer.from_config(config)
  return Tensor(layer.output, order, layer.name)


def _name(ref: Ref) -> str:
  """Names a tensor like the layer that makes it, where it makes but one."""
  is_only = ref.call == ref.output == 0
  return ref.operation if is_only else "_".join(map(str, ref))


def _following(order: Any, output: Any) -> Order:
  """The order of an output: that of the inputs, if it still has positions."""
  return ORIGINAL if order == LAST and len(output.shape) < 3 else order


def _carry_weights(old: Any, plan: Plan) -> None:
  """Copies the weights of a layer, in the new order."""
  if not getattr(old, "weights", None):
    return
  weights = plan.weights(old.get_weights())
  shapes = [w.shape for w in weights]
  if shapes != [w.shape for w in plan.layer.get_weights()]:
    raise layout_rules.refusal(
      old, f"its weights, of shapes {shapes}, depend on the layout"
    )
  plan.layer.set_weights(weights)
  if isinstance(plan.layer, keras.layers.Normalization):
    plan.layer.finalize_state()  # computes with copies of its weights


def _class_for(model: keras.Model) -> type:
  """What to make the new model of: a subclass may train in its own way."""
  if type(model).__module__.split(".")[0] == "keras":
    return keras.Model
  if isinstance(model, keras.Sequential):
    raise layout_rules.refusal(model, "it is a subclass of Sequential")
  return type(model)
