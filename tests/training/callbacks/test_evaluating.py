"""`evaluate` and `predict` take callbacks, too, of which none trains there."""

import pytest
from backends import needs_tensorflow

import tfecho
from tfecho.training import callbacks

MAKE = {
  "AveragedWeights": lambda **_: callbacks.AveragedWeights(),
  "BackupAndRestore": lambda path, data: callbacks.BackupAndRestore(
    path, data=data
  ),
  "EchoFactorSchedule": lambda **_: callbacks.EchoFactorSchedule(
    tfecho.factor_variable(2), lambda step: 1
  ),
  "EchoMonitor": lambda **_: callbacks.EchoMonitor(
    tfecho.Stats(), batch_size=2
  ),
  "FreshEpochs": lambda **_: callbacks.FreshEpochs(
    tfecho.Stats(), fresh_examples=4
  ),
  "StopAtTarget": lambda **_: callbacks.StopAtTarget("val_loss", 0.0),
}


# What other backends refuse as soon as it is made.
MARKS = {"BackupAndRestore": needs_tensorflow}


@pytest.mark.parametrize(
  "name",
  [
    pytest.param(name, marks=MARKS.get(name, ())) for name in callbacks.__all__
  ],
)
def test_a_callback_changes_nothing_where_nothing_is_trained(
  native_ops, compiled, examples, tmp_path, name
):
  data = examples(4).batch(2)
  model = compiled()
  loss = model.evaluate(data, verbose=0)
  before = model.get_weights()
  callback = MAKE[name](path=tmp_path, data=data)
  assert model.evaluate(data, verbose=0, callbacks=[callback]) == loss
  model.predict(data, verbose=0, callbacks=[callback])
  assert model.get_weights() == before
  assert list(tmp_path.iterdir()) == []
