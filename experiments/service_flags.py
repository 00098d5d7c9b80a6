"""The flags that say which tf.data service reads, for every script that trains.
"""

from __future__ import annotations

import os
import socket

from absl import flags

from experiments import served

_PATIENCE = 10  # seconds

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
    ValueError: If nobody answers there, or if it is said where the echo of a
      service stands, and there is none.
  """
  if DATA_SERVICE.value is None:
    if _ECHO.value is not None:
      raise ValueError(
        f"--service_echo: must come with --data_service, got {_ECHO.value}"
      )
    return None
  address = DATA_SERVICE.value.removeprefix("grpc://")
  _check_answers(address)
  os.environ[served.VARIABLE] = address
  return _ECHO.value or served.BEHIND


def _check_answers(address):
  """Raises ValueError if nobody listens: TensorFlow would wait for ever."""
  host, _, port = address.rpartition(":")
  try:
    socket.create_connection((host, int(port)), timeout=_PATIENCE).close()
  except (OSError, ValueError, OverflowError) as error:
    raise ValueError(
      f"--data_service: no dispatcher answers at {address}: {error}"
    ) from error
