"""How each kind of layer is converted from channels_first to channels_last.

    rule = rule_of(layer)
    plan = rule(layer, call)      # a new layer, and the order of what it takes

One function per kind of layer, and a table from the names of Keras' layers to
these functions. A rule says what becomes of one layer; following tensors
through a model is the business of `layout`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from tfecho.training import graph
from tfecho.training.layers import all_layers
from tfecho.training.orders import (
  LAST,
  ORIGINAL,
  Order,
  Tensor,
  channels_last,
  flattened,
  moved_axis,
)

Weights = list[np.ndarray]


@dataclasses.dataclass(frozen=True)
class Call:
  """One call of an old layer, on tensors of the new model."""

  args: tuple[Any, ...]
  kwargs: dict[str, Any]

  @property
  def inputs(self) -> list[Tensor]:
    """The tensors that are passed, in the order of Keras."""
    return list(graph.leaves((self.args, self.kwargs), Tensor))


@dataclasses.dataclass(frozen=True)
class Plan:
  """What becomes of a layer.

  Attributes:
    layer: The new layer.
    takes: The order in which it takes its inputs: one for all, a list with one
      per input, or None: whatever is common to the inputs of a call.
    gives: The order of each output; None if that of the inputs.
    restores: Whether outputs are moved to channels_last behind the layer.
    weights: From the old layer's weights to the new layer's.
  """

  layer: Any
  takes: Order | list[Order] | None
  gives: list[Order] | None = None
  restores: bool = False
  weights: Callable[[Weights], Weights] = list


Rule = Callable[[Any, Call], Plan]


def refusal(layer: Any, why: str) -> ValueError:
  """Returns the error for a layer that can't be converted."""
  return ValueError(
    f"layer {layer.name!r} ({type(layer).__name__}) can't be converted to"
    f" channels_last: {why}"
  )


def common_order(layer: Any, inputs: list[Tensor]) -> Order:
  """The order that a layer without one of its own takes its inputs in."""
  orders = {tensor.order for tensor in inputs}
  ranks = {tensor.rank for tensor in inputs}
  if len(ranks) > 1:
    if LAST in orders and min(ranks) > 2:
      raise refusal(layer, f"it combines inputs of ranks {sorted(ranks)}")
    return ORIGINAL
  if LAST in orders:
    return LAST
  return orders.pop() if len(orders) == 1 else ORIGINAL


# --- What layers are --------------------------------------------------------


def is_channels_first(layer: Any) -> bool:
  """Whether a layer takes axis 1 of an image for the channels."""
  if data_format(layer) is not None:
    return data_format(layer) == "channels_first"
  if isinstance(layer, keras.layers.BatchNormalization) or (
    type(layer).__name__ == "GroupNormalization"
  ):
    rank = getattr(layer.input_spec, "ndim", None) or 0
    return rank > 2 and _config_axes(layer) == [1]
  return False


def data_format(layer: Any) -> str | None:
  """The data format of a layer; None if it knows of none."""
  if not hasattr(layer, "data_format"):
    return None
  return layer.data_format or keras.backend.image_data_format()


def wants_channels_last(layer: Any) -> bool:
  """Whether a layer, once converted, needs its inputs in channels_last."""
  if type(layer) is keras.layers.SpectralNormalization:
    return wants_channels_last(layer.layer)
  return is_channels_first(layer)


def lets_pass(node: graph.Node) -> bool:
  """Whether a call leaves axes where they are, as far as can be known."""
  rule = rule_of(node.operation)
  if rule is operation:
    return _is_elementwise(node.operation, node.args, node.kwargs, graph.Ref)
  return rule in _LETTING_PASS


def _config_axes(layer: Any) -> list[int]:
  axis = layer.get_config()["axis"]
  if axis is None:
    return []
  return list(axis) if isinstance(axis, (list, tuple)) else [axis]


def _axes(layer: Any, call: Call) -> list[int]:
  return sorted(a % call.inputs[0].rank for a in _config_axes(layer))


def _is_elementwise(
  function: Any, args: Any, kwargs: Any, placeholder: type
) -> bool:
  """Whether a function does not care for the order of axes, by trying it.

  Args:
    function: Any function of tensors.
    args: Positional arguments; placeholders stand where tensors are passed.
    kwargs: Keyword arguments, likewise.
    placeholder: The type of what stands for a tensor.
  """

  def call(*order: int) -> np.ndarray:
    draw = np.random.RandomState(0)

    def image(_: Any) -> np.ndarray:
      return draw.randn(2, 3, 4, 5).astype("float32").transpose(order)

    tensors = graph.replace((args, kwargs), placeholder, image)
    return np.asarray(function(*tensors[0], **tensors[1]), "float32")

  try:
    first, last = call(0, 1, 2, 3), call(0, 2, 3, 1)
  except Exception:  # whatever it is: it does not take what elementwise takes
    return False
  if first.shape != (2, 3, 4, 5) or last.shape != (2, 4, 5, 3):
    return False
  moved = first.transpose(0, 2, 3, 1)
  return np.allclose(moved, last, rtol=1e-4, atol=1e-6, equal_nan=True)


def _has_elementwise_activation(layer: Any) -> bool:
  function = getattr(layer, "activation", None)
  return not callable(function) or _is_elementwise(function, (1,), {}, int)


# --- New layers and weights -------------------------------------------------


def clone(layer: Any, **changed: Any) -> Any:
  """A new layer of the same configuration, but for what `changed` says."""
  try:
    config = layer.get_config()
    if "dtype" in config:
      # Some layers of Keras 3 write down the weights' dtype, not the policy.
      config["dtype"] = layer.dtype_policy
    return type(layer).from_config({**config, **changed})
  except (NotImplementedError, TypeError, ValueError) as error:
    raise refusal(
      layer, f"it can't be made anew from its configuration: {error}"
    ) from error


def _permuted(order: Order) -> Callable[[Weights], Weights]:
  """Permutes the first axis of weights that are as long as the features."""
  indices = order.indices()
  return lambda weights: [
    w[indices] if w.shape[:1] == indices.shape else w for w in weights
  ]


def _transposed(
  shape: list[Any], order: np.ndarray
) -> Callable[[Weights], Weights]:
  """Transposes weights of a shape; others, such as counts, stay."""
  return lambda weights: [
    w.reshape(shape).transpose(order) if w.ndim == len(shape) else w
    for w in weights
  ]


# --- Rules ------------------------------------------------------------------


def as_it_was(layer: Any, call: Call) -> Plan:
  """Axes mean what they meant; what had been moved is moved back."""
  del call
  inside = [x for x in all_layers(layer) if is_channels_first(x)]
  if inside:
    raise refusal(
      layer,
      f"{inside[0].name!r} inside it works in channels_first, and it is not"
      " known where it takes its channels from",
    )
  return Plan(clone(layer), ORIGINAL)


def on_old_axes(layer: Any, call: Call) -> Plan:
  """As it was; and what comes out is an image again, if one goes in."""
  is_image = any(tensor.order == LAST for tensor in call.inputs)
  return dataclasses.replace(as_it_was(layer, call), restores=is_image)


def with_data_format(layer: Any, call: Call) -> Plan:
  """Convolutions, pooling, padding: all that has a `data_format`."""
  if data_format(layer) == "channels_last":
    return as_it_was(layer, call)
  if not _has_elementwise_activation(layer):
    raise refusal(
      layer,
      "its activation works along the last axis, which holds no channels in"
      " channels_first; use a `Softmax` layer of its own, with its axis",
    )
  new = clone(layer, data_format="channels_last")
  if data_format(new) != "channels_last":
    raise refusal(layer, "its configuration does not set its `data_format`")
  return Plan(new, LAST)


def operation(op: Any, call: Call) -> Plan:
  """What is called without a layer, such as `x + y` or `keras.ops.relu`."""
  new = type(op).from_config(op.get_config())
  is_elementwise = _is_elementwise(op, call.args, call.kwargs, Tensor)
  return Plan(new, None if is_elementwise else ORIGINAL)


def elementwise(layer: Any, call: Call) -> Plan:
  """Any order will do, as long as it is the same for all inputs."""
  del call
  return Plan(clone(layer), None)


def activation(layer: Any, call: Call) -> Plan:
  """Elementwise, unless it is one such as softmax."""
  if _has_elementwise_activation(layer):
    return elementwise(layer, call)
  return on_old_axes(layer, call)


def dropout(layer: Any, call: Call) -> Plan:
  """Elementwise, but for the shape of the noise where one is given."""
  shape = layer.noise_shape
  if shape is None:
    return elementwise(layer, call)
  if common_order(layer, call.inputs) == LAST:
    return Plan(clone(layer, noise_shape=channels_last(tuple(shape))), LAST)
  return on_old_axes(layer, call)


def rescaling(layer: Any, call: Call) -> Plan:
  """By numbers; arrays go on to broadcast along the axes they meant."""
  if np.ndim(layer.scale) == np.ndim(layer.offset) == 0:
    return elementwise(layer, call)
  return on_old_axes(layer, call)


def along_axis(layer: Any, call: Call) -> Plan:
  """Normalizations, softmax, concatenation: the axis moves.

  Weights have the axes' shape and move along: gamma of shape [channels,
  height, width] becomes [height, width, channels].
  """
  order = common_order(layer, call.inputs)
  if order != LAST and not is_channels_first(layer):
    return _along_features(layer, call, order)
  image = call.inputs[0]
  axes = _axes(layer, call)
  moved = [moved_axis(axis, image.rank) for axis in axes]
  return Plan(
    clone(layer, axis=sorted(moved) if len(moved) > 1 else moved[0]),
    LAST,
    weights=_transposed([image.old_shape[a] for a in axes], np.argsort(moved)),
  )


def _along_features(layer: Any, call: Call, order: Order) -> Plan:
  """Behind a flattened image, weights per feature are permuted."""
  if order.kind == "flattened" and len(call.inputs) == 1:
    return Plan(clone(layer), order, weights=_permuted(order))
  return on_old_axes(layer, call)


def group_normalization(layer: Any, call: Call) -> Plan:
  """Along its axis; flattened features would fall into other groups."""
  if call.inputs[0].order == LAST or is_channels_first(layer):
    return along_axis(layer, call)
  return on_old_axes(layer, call)


def rms_normalization(layer: Any, call: Call) -> Plan:
  """Along the last axes; Keras 3 can't scale along others."""
  image = call.inputs[0]
  moved = sorted(moved_axis(axis, image.rank) for axis in _axes(layer, call))
  if image.order == LAST and moved != list(range(image.rank))[-len(moved):]:
    return on_old_axes(layer, call)
  return along_axis(layer, call)


def normalization(layer: Any, call: Call) -> Plan:
  """By one mean, or one per channel; more axes are left as they were."""
  axes = _axes(layer, call)
  if not axes:
    return elementwise(layer, call)
  return along_axis(layer, call) if len(axes) == 1 else on_old_axes(layer, call)


def prelu(layer: Any, call: Call) -> Plan:
  """One slope per element, but for the axes that share theirs."""
  order = common_order(layer, call.inputs)
  if order != LAST:
    return _along_features(layer, call, order)
  rank = call.inputs[0].rank
  shared = [moved_axis(axis, rank) for axis in layer.shared_axes or ()]
  new = clone(layer, shared_axes=shared or None)
  return Plan(new, LAST, weights=lambda w: [np.moveaxis(w[0], 0, -1)])


def dense(layer: Any, call: Call) -> Plan:
  """Behind a flattened image, the rows of the kernel are permuted."""
  order = call.inputs[0].order
  if order.kind != "flattened":
    return on_old_axes(layer, call)

  def weights(old: Weights) -> Weights:
    kernels = _permuted(order)([w for w in old if w.ndim == 2])
    return kernels + [w for w in old if w.ndim != 2]

  return Plan(clone(layer), order, [ORIGINAL], weights=weights)


def flatten(layer: Any, call: Call) -> Plan:
  """In channels_first, Keras goes by height, width, channels all the same."""
  new = clone(layer, data_format="channels_last")
  if is_channels_first(layer):
    return Plan(new, LAST, [ORIGINAL])
  order = flattened(call.inputs[0])
  return Plan(new, LAST, [order]) if order else Plan(new, ORIGINAL)


def reshape(layer: Any, call: Call) -> Plan:
  """Flattens, or reshapes the positions in every channel, or starts anew."""
  image = call.inputs[0]
  shape = tuple(layer.compute_output_shape(image.old_shape))[1:]
  flat = flattened(image)
  if flat and len(shape) == 1:
    return Plan(clone(layer), LAST, [flat])
  if image.order == LAST and len(shape) > 1 and shape[0] == image.old_shape[1]:
    target = tuple(-1 if size is None else size for size in shape)
    new = clone(layer, target_shape=(*target[1:], target[0]))
    return Plan(new, LAST, [LAST])
  return as_it_was(layer, call)


def permute(layer: Any, call: Call) -> Plan:
  """What moves the channels back and what the layer does, in one."""
  image = call.inputs[0]
  if image.order != LAST:
    return as_it_was(layer, call)
  dims = tuple(moved_axis(axis, image.rank) for axis in layer.dims)
  return Plan(clone(layer, dims=dims), LAST, [ORIGINAL])


def spectral_normalization(layer: Any, call: Call) -> Plan:
  """The layer inside decides."""
  if not wants_channels_last(layer):
    return as_it_was(layer, call)
  inside = rule_of(layer.layer)(layer.layer, call)
  config = {**layer.get_config(), "dtype": layer.dtype_policy}
  return Plan(type(layer)(**{**config, "layer": inside.layer}), LAST)


def sequence_of_images(layer: Any, call: Call) -> Plan:
  """Recurrent convolutions: [batch, time, channels, height, width]."""
  if not is_channels_first(layer):
    return as_it_was(layer, call)
  raise refusal(layer, "its channels are on axis 2, behind the time")


def locally_connected(layer: Any, call: Call) -> Plan:
  """A kernel for every position; only Keras 2 has it."""
  if not is_channels_first(layer):
    return as_it_was(layer, call)
  raise refusal(layer, "the order of its weights depends on `data_format`")


def unknown(layer: Any, call: Call) -> Plan:
  """A layer that is not one of Keras' and has no `data_format`."""
  if any(tensor.order == LAST for tensor in call.inputs):
    raise refusal(
      layer,
      "it stands among channels_first layers, and nothing says which axis it"
      " works on; give it an attribute and an argument `data_format`",
    )
  return as_it_was(layer, call)


# --- The table --------------------------------------------------------------

_RULES: dict[Rule, str] = {
  activation: "Activation",
  along_axis: """
    BatchNormalization Concatenate LayerNormalization Softmax
    UnitNormalization""",
  dense: "Dense",
  dropout: "AlphaDropout Dropout",
  elementwise: """
    ActivityRegularization Add Average ELU GaussianDropout GaussianNoise
    Identity LeakyReLU Maximum Minimum Multiply ReLU Subtract
    ThresholdedReLU""",
  flatten: "Flatten",
  group_normalization: "GroupNormalization",
  locally_connected: "LocallyConnected1D LocallyConnected2D",
  normalization: "Normalization",
  permute: "Permute",
  prelu: "PReLU",
  rescaling: "Rescaling",
  reshape: "Reshape",
  rms_normalization: "RMSNormalization",
  sequence_of_images: "ConvLSTM1D ConvLSTM2D ConvLSTM3D",
  spectral_normalization: "SpectralNormalization",
  unknown: "Lambda",
}

_BY_NAME = {name: rule for rule, names in _RULES.items()
            for name in names.split()}

# A user's layer is asked for at the latest when channels_last reaches it.
_LETTING_PASS = {
  activation, along_axis, dropout, elementwise, group_normalization,
  normalization, prelu, rescaling, rms_normalization, unknown,
}


def rule_of(layer: Any) -> Rule:
  """Returns the rule for a layer, or for another operation.

  Only for layers of Keras itself the class tells what they do: a subclass may
  do something else along the axes.
  """
  name = type(layer).__name__
  if not isinstance(layer, keras.layers.Layer) or name.endswith("OpLambda"):
    return operation
  is_of_keras = getattr(keras.layers, name, None) is type(layer)
  if is_of_keras and name in _BY_NAME:
    return _BY_NAME[name]
  if data_format(layer):
    return with_data_format
  return as_it_was if is_of_keras else unknown
