"""What a training step costs in channels_first, and once it is converted.

    python -m experiments.benchmark --suite=layout

Costs are in milliseconds per training step of ResNet-32 on batches of 128.
"""

import keras

from experiments.benchmark import training
from experiments.benchmark.runner import Bound, Case
from tfecho.training import check_layout, to_channels_last


def cases():
  """One case: the same network, in channels_first and in channels_last."""
  return [
    Case(
      what=f"ResNet-32, batch {training.BATCH_SIZE}",
      unit="ms",
      contenders={
        "converted": lambda: training.step_of(_converted()),
        "channels_first": lambda: training.step_of(_channels_first()),
        "built in channels_last": lambda: training.step_of(training.resnet32()),
      },
      bounds=[
        Bound("converted", "channels_first", 1 / 1.5),
        Bound("converted", "built in channels_last"),
      ],
      max_rounds=5,
    )
  ]


def _converted():
  model = to_channels_last(_channels_first())
  check_layout(model)
  return model


def _channels_first():
  """ResNet-32 as it would be written for channels_first."""
  height, width, channels = training.IMAGE_SHAPE

  def clone(layer):
    config = layer.get_config()
    if "data_format" in config:
      config["data_format"] = "channels_first"
    if isinstance(layer, keras.layers.BatchNormalization):
      config["axis"] = 1
    return type(layer).from_config(config)

  return keras.models.clone_model(
    training.resnet32(),
    input_tensors=keras.Input((channels, height, width)),
    clone_function=clone,
  )
