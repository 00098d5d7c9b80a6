"""The optimizers of tensorflow-addons, as `optimizers.get` needs them.

This is the only module that imports tensorflow-addons. Its optimizers are made
for `keras.optimizers.legacy`, and so are those that its wrappers take. Here
they get what they lack:

*   the weight decay of Keras;
*   steps that every one counts, also inside of two wrappers;
*   averages that `AveragedWeights` finds, and that begin with the weights
    behind the first step, as those of Keras 3 do.

They are stored with a model, which then comes back in a process that has
imported this module.
"""

from __future__ import annotations

import warnings
from typing import Any

import keras
import tensorflow as tf

with warnings.catch_warnings():
  # That it has ended. Whoever asks for it by name knows.
  warnings.simplefilter("ignore")
  import tensorflow_addons as tfa

_registered = keras.saving.register_keras_serializable(package="tfecho")


def make(
  base: str, options: dict[str, Any], wrappers: list[tuple[str, dict[str, Any]]]
) -> Any:
  """Returns an optimizer.

  Args:
    base: what is innermost, one of `optimizers.ADDONS`.
    options: of it.
    wrappers: what is on top, the outermost first: pairs of one of
      `optimizers.WRAPPERS`, and its options.
  """
  # Only the outermost optimizer sees all gradients.
  clipping = {key: options.pop(key) for key in _CLIPPING if key in options}
  made = [(BASES[base], options)]
  made += [(_WRAPPERS[name], dict(given)) for name, given in reversed(wrappers)]
  made[-1][1].update(clipping)
  (first, of_first), *others = made
  optimizer = first(**of_first)
  for wrapper, given in others:
    optimizer = wrapper(optimizer, **given)
  return optimizer


_CLIPPING = ("clipnorm", "clipvalue", "global_clipnorm")


# --- The decay of Keras -----------------------------------------------------


class _Decay(keras.optimizers.legacy.Optimizer):
  """Takes `learning_rate * weight_decay` of a weight off before its update."""

  def __init__(self, *, weight_decay: float = 0.0, **options: Any):
    super().__init__(**options)
    # Not `weight_decay`, by which LAMB and NovoGrad would decay again.
    self._decoupled_decay = weight_decay

  def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
    with tf.control_dependencies(self._decayed(var)):
      return super()._resource_apply_dense(grad, var)

  def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
    with tf.control_dependencies(self._decayed(var)):
      return super()._resource_apply_sparse(grad, var, indices)

  def _decayed(self, var: Any) -> list[Any]:
    if not self._decoupled_decay:
      return []
    share = self._decayed_lr(var.dtype) * self._decoupled_decay
    return [var.assign_sub(share * var, use_locking=self._use_locking)]

  def get_config(self) -> dict[str, Any]:
    return {**super().get_config(), "weight_decay": self._decoupled_decay}


@_registered
class DecayingSGD(_Decay, keras.optimizers.legacy.SGD):
  """SGD, with the decay of Keras."""

  def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
    if self._momentum:
      return super()._resource_apply_sparse(grad, var, indices)
    # Which the original knows only from being called with duplicates.
    slices = tf.IndexedSlices(grad, indices, tf.shape(var))
    return self._resource_apply_dense(tf.convert_to_tensor(slices), var)

  def _resource_apply_sparse_duplicate_indices(
    self, grad: Any, var: Any, indices: Any
  ) -> Any:
    base: Any = super(keras.optimizers.legacy.SGD, self)
    return base._resource_apply_sparse_duplicate_indices(grad, var, indices)


@_registered
class DecayingAdam(_Decay, keras.optimizers.legacy.Adam):
  """Adam, with the decay of Keras."""


@_registered
class DecayingAdamW(DecayingAdam):
  """AdamW as Keras has it, with its default."""

  def __init__(self, *, weight_decay: float = 0.004, **options: Any):
    super().__init__(weight_decay=weight_decay, **options)


@_registered
class DecayingLamb(_Decay, tfa.optimizers.LAMB):
  """LAMB, with the decay and the default of Keras."""

  def __init__(self, *, epsilon: float = 1e-7, **options: Any):
    super().__init__(epsilon=epsilon, **options)


@_registered
class DecayingLazyAdam(_Decay, tfa.optimizers.LazyAdam):
  """LazyAdam, with the decay of Keras, which is not lazy."""


@_registered
class DecayingNovoGrad(_Decay, tfa.optimizers.NovoGrad):
  """NovoGrad, with the decay of Keras."""


BASES = {
  "sgd": DecayingSGD,
  "adam": DecayingAdam,
  "adamw": DecayingAdamW,
  "lamb": DecayingLamb,
  "lazy_adam": DecayingLazyAdam,
  "novograd": DecayingNovoGrad,
  "addons_adamw": tfa.optimizers.AdamW,
  "addons_sgdw": tfa.optimizers.SGDW,
}


# --- On top of others -------------------------------------------------------


class _Wrapper(keras.optimizers.legacy.Optimizer):
  """Lets every optimizer inside count the steps, not only the next one."""

  def apply_gradients(self, *args: Any, **kwargs: Any) -> Any:
    inner = self._optimizer
    while inner is not None:
      inner._iterations = self.iterations
      inner = getattr(inner, "_optimizer", None)
    return super().apply_gradients(*args, **kwargs)


class _Average(_Wrapper):
  """Has averages, which it gives as an optimizer of Keras does."""

  use_ema = True

  def finalize_variable_values(self, var_list: Any) -> None:
    """Sets weights to their averages."""
    if self.iterations > self._last_step_without():
      for var in var_list:
        var.assign(self.get_slot(var, "average"))

  def _last_step_without(self) -> Any:
    return 0


@_registered
class CountingLookahead(_Wrapper, tfa.optimizers.Lookahead):
  """Lookahead, also inside of an average."""


@_registered
class MovingAverageFromFirstStep(_Average, tfa.optimizers.MovingAverage):
  """The moving average as Keras 3 has it."""

  def __init__(
    self, optimizer: Any, ema_momentum: float = 0.99, **options: Any
  ):
    options = {"average_decay": ema_momentum, "start_step": 1, **options}
    super().__init__(optimizer, **options)


@_registered
class AverageAfterStart(_Average, tfa.optimizers.SWA):
  """SWA, whose weights are zero until it starts, and are not to be used."""

  def _last_step_without(self) -> Any:
    return self._get_hyper("start_averaging", tf.int64)


_WRAPPERS = {
  "lookahead": CountingLookahead,
  "moving_average": MovingAverageFromFirstStep,
  "swa": AverageAfterStart,
}
