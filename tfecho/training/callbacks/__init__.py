"""Callbacks for `model.fit` that know what an echo is.

    stats = tfecho.Stats()
    dataset = pipeline.dataset(echo_after="decode", factor=4, stats=stats)
    dataset = dataset.apply(tfecho.monitor(stats))
    model.fit(
      dataset,
      validation_data=validation,
      callbacks=[
        EchoMonitor(stats, batch_size=256),     # first: others read its logs
        StopAtTarget("val_accuracy", 0.76, mean_of=3),
        keras.callbacks.CSVLogger("training.csv"),
      ],
    )

Early stopping, `ReduceLROnPlateau`, `validation_freq`: what Keras counts in
epochs counts in passes over fresh data where an epoch is one, as it is with
`Pipeline`. To count in so many fresh examples, say that they are an epoch, and
everything follows:

    timeline = Timeline(batch_size=256, factor=4)
    model.fit(
      endless_dataset,
      steps_per_epoch=timeline.steps("100_000sp"),
      callbacks=[keras.callbacks.EarlyStopping(patience=5)],    # 500,000
    )

That is exact for a constant factor. Under one that changes, `FreshEpochs` ends
every epoch when its fresh examples have been used.
"""

from tfecho.training.callbacks.averages import AveragedWeights
from tfecho.training.callbacks.backup import BackupAndRestore
from tfecho.training.callbacks.epochs import FreshEpochs
from tfecho.training.callbacks.factor import EchoFactorSchedule
from tfecho.training.callbacks.monitor import EchoMonitor
from tfecho.training.callbacks.target import StopAtTarget

__all__ = [
  "AveragedWeights",
  "BackupAndRestore",
  "EchoFactorSchedule",
  "EchoMonitor",
  "FreshEpochs",
  "StopAtTarget",
]
