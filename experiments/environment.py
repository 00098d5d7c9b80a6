"""What a run ran on: versions, machine and code, for the record."""

import functools
import pathlib
import platform
import subprocess

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


@functools.cache
def revision():
  """Returns the commit of the checkout that runs, None if git knows of none.

  With "-dirty" behind it where files are not those of the commit. Runs of two
  revisions compare, unless what they measure was changed, which nobody can tell
  from their names.
  """
  command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
  here = pathlib.Path(__file__).parent
  try:
    done = subprocess.run(
      command, cwd=here, capture_output=True, check=True, text=True
    )
  except (OSError, subprocess.CalledProcessError):
    return None
  return done.stdout.strip()


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
