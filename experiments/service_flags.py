"""The flags that say which tf.data service reads, for every script that trains.
"""

from __future__ import annotations

import os

from absl import flags

from experiments import served

DATA_SERVICE = flags.DEFINE_string(
  "data_service",
  None,
  "Address HOST:PORT of the dispatcher of a tf.data service whose workers read "
  "and decode, such as `python -m experiments.data_service` starts. Default: "
  "this process does.",
)
_ECHO = flags.DEFINE_enum(
  "service_echo",
  None,
  served.ECHOES,
  "Where an echo stands with --data_service, a name, without unit: `behind` "
  "the service, in the process that trains, or on its `workers`. Default: "
  "behind.",
)


def echo():
  """Returns where the echo stands; None if there is no service.

  Lets this process, and those that it starts, find the service.

  Raises:
    ValueError: If there is an echo on workers, and none of these.
  """
  if DATA_SERVICE.value is None:
    if _ECHO.value is not None:
      raise ValueError(
        f"--service_echo: must come with --data_service, got {_ECHO.value}"
      )
    return None
  os.environ[served.VARIABLE] = DATA_SERVICE.value.removeprefix("grpc://")
  return _ECHO.value or served.BEHIND
