"""Mixed precision: compute in 16 bit, keep weights and results in 32.

```python
import keras
from tfecho.training import check_precision, set_precision

set_precision("mixed_bfloat16")                 # before the model is built
model = keras.Sequential([
  keras.Input((8,)),
  keras.layers.Dense(4, activation="relu"),
  keras.layers.Dense(2, dtype="float32"),       # the loss needs the range
])
model.compile(optimizer="sgd", loss="mse")
check_precision(model)
set_precision("float32")
```

Source: P. Micikevicius et al., "Mixed Precision Training", arXiv 1710.03740:
a copy of the weights in float32, and a scaled loss where gradients are float16.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import keras

from tfecho.training import graph
from tfecho.training.layers import all_layers, dtype_name

PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16")


def set_precision(precision: str) -> None:
  """Sets the precision of all layers that are made from now on.

  Layers that exist keep theirs, and so do layers with a `dtype` of their own.

  ```python
  import keras
  from tfecho.training import set_precision

  set_precision("mixed_bfloat16")
  assert keras.layers.Dense(1).compute_dtype == "bfloat16"
  set_precision("float32")
  ```

  Args:
    precision: "float32"; "mixed_bfloat16", for TPUs, GPUs from 2020 on, and
      CPUs with AVX512-BF16 or AMX; or "mixed_float16", for GPUs, which needs
      loss scaling: `Model.compile` adds it.

  Raises:
    ValueError: If `precision` is none of these.
  """
  check_name(precision)
  keras.mixed_precision.set_global_policy(precision)


def check_name(precision: Any) -> None:
  """Raises ValueError if there is no such precision."""
  if precision not in PRECISIONS:
    raise ValueError(
      f"`precision` must be one of {', '.join(PRECISIONS)}, got {precision!r}"
    )


@contextlib.contextmanager
def policy_scope(policy: Any) -> Iterator[None]:
  """Makes models with a policy: `compile` goes by it when it scales losses."""
  before = keras.mixed_precision.global_policy()
  keras.mixed_precision.set_global_policy(policy)
  try:
    yield
  finally:
    keras.mixed_precision.set_global_policy(before)


def check_precision(model: keras.Model, *, optimizer: Any = None) -> None:
  """Raises an error where low precision would spoil the training.

  Every output that is a floating-point number has to be float32, since the
  loss adds and exponentiates; every weight and every running statistic has to
  be kept in float32, where small updates are not rounded away; and if a layer
  computes in float16, the loss has to be scaled. `Model.compile` adds the
  scaling only if the model's own policy is mixed_float16, not for layers that
  are given it one by one.

  ```python
  import keras
  from tfecho.training import check_precision

  model = keras.Sequential([
    keras.Input((8,)), keras.layers.Dense(2, dtype="mixed_bfloat16")
  ])
  try:
    check_precision(model)
  except ValueError as error:
    assert "bfloat16" in str(error)
  ```

  Args:
    model: A built model; compiled, if it computes in float16 and `optimizer`
      is not given.
    optimizer: What scales the loss in a training loop of one's own. By default
      the optimizer that the model was compiled with.

  Raises:
    ValueError: If something is not as described. It names the layer, and says
      what to do.
  """
  if not isinstance(model, keras.Model):
    raise ValueError(f"`model` must be a keras.Model, got {model!r}")
  _check_outputs(model)
  _check_weights(model)
  _check_loss_scaling(model, optimizer or getattr(model, "optimizer", None))


# --- Outputs ----------------------------------------------------------------


def _check_outputs(model: keras.Model) -> None:
  for name, dtype in _outputs(model):
    if "float" in dtype and dtype != "float32":
      raise ValueError(
        f"layer {name!r} gives an output of `model` in {dtype}, and the loss"
        " needs float32: give this layer dtype='float32', or put"
        " `keras.layers.Activation('linear', dtype='float32')` behind it"
      )


def _outputs(model: keras.Model) -> Iterator[tuple[str, str]]:
  """Name of the layer that makes it, and dtype, of every output."""
  if not graph.has_graph(model):
    for output in graph.leaves(_call_symbolically(model)):
      yield model.name, dtype_name(output)
    return
  for name, output in zip(_output_names(model), model.outputs):
    yield name, dtype_name(output)


def _output_names(model: keras.Model) -> list[str]:
  """Names of the layers that make the outputs, inside of nested models."""
  if isinstance(model, keras.Sequential):
    names = [model.layers[-1].name]
  else:
    names = model.output_names
  inside = {x.name: x for x in model.layers if graph.has_graph(x)}
  nested = {x.name: _output_names(x) for x in inside.values()}
  return [
    nested[name][0] if len(nested.get(name, ())) == 1 else name
    for name in names
  ]


def _call_symbolically(model: keras.Model) -> Any:
  """Outputs of a model with a `call` of its own, without computing any."""
  config = model.get_build_config() or {}
  if not model.built or config.get("input_shape") is None:
    raise ValueError(
      f"the outputs of `model` {model.name!r} are not known: call it once on a"
      " batch, given as its only argument"
    )
  return model(_inputs(config["input_shape"]))


def _inputs(shapes: Any) -> Any:
  """Symbolic tensors of the shapes in a nested structure."""
  if isinstance(shapes, dict):
    return {name: _inputs(shape) for name, shape in shapes.items()}
  if any(isinstance(item, (dict, list, tuple)) for item in shapes):
    return [_inputs(shape) for shape in shapes]
  return keras.Input(batch_shape=tuple(shapes))


# --- Weights ----------------------------------------------------------------


def _check_weights(model: keras.Model) -> None:
  for layer in all_layers(model):
    for weight in layer.weights:
      dtype = dtype_name(weight)
      if "float" in dtype and dtype != "float32":
        raise ValueError(
          f"layer {layer.name!r} keeps its weight {weight.name!r} in {dtype},"
          " where small updates are lost: give the layer"
          f" dtype='mixed_{dtype}' or dtype='float32'"
        )


# --- Loss scaling -----------------------------------------------------------


def _check_loss_scaling(model: keras.Model, optimizer: Any) -> None:
  layers = [
    layer
    for layer in all_layers(model)
    if layer.compute_dtype == "float16"
    and not isinstance(layer, keras.layers.InputLayer)
  ]
  if not layers or not model.trainable_weights or _scales_loss(optimizer):
    return
  raise ValueError(
    f"layer {layers[0].name!r} computes in float16, and"
    f" {_without_scaling(optimizer)}, so that small gradients become zero:"
    " compile the model with `keras.mixed_precision.LossScaleOptimizer("
    "optimizer)`, or use mixed_bfloat16"
  )


def _scales_loss(optimizer: Any) -> bool:
  if isinstance(optimizer, keras.mixed_precision.LossScaleOptimizer):
    # Keras 2 has a fixed scale too, which may be 1.
    return getattr(optimizer, "dynamic", True) or optimizer.initial_scale > 1
  # Keras 3 has the fixed scale in every optimizer.
  return (getattr(optimizer, "loss_scale_factor", None) or 1) > 1


def _without_scaling(optimizer: Any) -> str:
  if optimizer is None:
    return "`model` has no optimizer yet that would scale the loss"
  return f"the optimizer {_name(optimizer)!r} does not scale the loss"


def _name(optimizer: Any) -> str:
  return getattr(optimizer, "name", type(optimizer).__name__)
