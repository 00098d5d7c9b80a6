"""What a run ran on: versions and machine, for the record."""

import platform

import keras
import tensorflow as tf

import tfecho


def environment():
  """Returns versions and devices by name; equal for runs that compare."""
  return {
    "python": platform.python_version(),
    "tensorflow": tf.__version__,
    "keras": keras.__version__,
    "tfecho": tfecho.__version__,
    "system": f"{platform.system()} {platform.machine()}",
    "cpu": _cpu(),
    "gpus": [_gpu(device) for device in tf.config.list_physical_devices("GPU")],
  }


def _cpu():
  """The model of the processor; Linux tells it in one place only."""
  try:
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
      for line in lines:
        if line.startswith("model name"):
          return line.split(":", 1)[1].strip()
  except OSError:
    pass
  return platform.processor() or platform.machine()


def _gpu(device):
  details = tf.config.experimental.get_device_details(device)
  return details.get("device_name", device.name)
