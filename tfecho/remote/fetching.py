"""The bytes of one object, through fsspec, with retries.

  fetcher = Fetcher(attempts=5, wait_seconds=0.5, timeout_seconds=60)
  fetcher("s3://bucket/name")
"""

from __future__ import annotations

import importlib
import os
import random
import re
import sys
import threading
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from tfecho.remote.under_way import fetches_under_way

# What TensorFlow does not read by itself, as a regular expression of RE2, too.
REMOTE = r"(?s)(s3|http|https)://.*"

_LONGEST_WAIT_SECONDS = 30.0
_CONNECTIONS = 64  # At once, to one store; botocore's own default is 10.
_NOT_TEMPORARY = (
  FileNotFoundError,
  IsADirectoryError,
  PermissionError,
  ImportError,
  TypeError,
  ValueError,
)


def is_remote(name: str) -> bool:
  """Whether fsspec reads `name`, rather than TensorFlow."""
  return re.fullmatch(REMOTE, name) is not None


def as_bytes(value: Any) -> bytes:
  """Returns a scalar as `tf.numpy_function` gives it: eagerly, an array."""
  return value if isinstance(value, bytes) else value.item()


def imported(module: str) -> ModuleType:
  """Returns a module that the extra `remote` brings.

  Raises:
    ImportError: if it is not there, with what to install.
  """
  try:
    return importlib.import_module(module)
  except ImportError as error:
    raise ImportError(
      f"reading remote files needs {module}: `pip install tfecho[remote]`"
    ) from error


class Fetcher:
  """Fetches objects; several threads may call it at once, and overlap.

  What may pass - no answer in time, a connection that was cut, status 408, 429
  and 500 on - is tried again, after a wait that doubles from time to time.
  """

  def __init__(
    self,
    *,
    attempts: int,
    wait_seconds: float,
    timeout_seconds: float,
    storage_options: Mapping[str, Any] | None = None,
  ):
    self._attempts = attempts
    self._wait_seconds = wait_seconds
    self._timeout_seconds = timeout_seconds
    self._storage_options = dict(storage_options or {})
    self._lock = threading.Lock()
    self._file_systems: dict[tuple[int, str], Any] = {}

  def __call__(self, name: str) -> bytes:
    """Returns the contents of an object.

    Raises:
      FileNotFoundError: if it does not exist.
      PermissionError: if it may not be read.
      ImportError: if what reads it is not installed.
      OSError: if all attempts have failed, or trying again is of no use.
    """
    with fetches_under_way:
      return self._fetch_patiently(name)

  def _fetch_patiently(self, name: str) -> bytes:
    for attempt in range(1, self._attempts + 1):
      fetches_under_way.check()
      try:
        contents = self._fetch(name)
        fetches_under_way.check()  # Else there may be none.
        return contents
      except ImportError:
        raise
      except Exception as error:
        if attempt == self._attempts or not _is_temporary(error):
          raise _explained(name, error, attempt) from error
      fetches_under_way.sleep(self._pause(attempt))
    raise AssertionError("the last attempt returns or raises")

  def _fetch(self, name: str) -> bytes:
    # All requests run in the one event loop that fsspec has for the process;
    # the calling thread waits for its own without holding Python's lock.
    asyn = imported("fsspec.asyn")
    file_system = self._file_system(name.split("://")[0])
    path = file_system._strip_protocol(name)
    return asyn.sync(
      file_system.loop,
      lambda: fetches_under_way.awaiting(file_system._cat_file(path)),
      timeout=self._timeout_seconds,
    )

  def _file_system(self, protocol: str) -> Any:
    # After a fork, the loop and the connections are the parent's.
    key = os.getpid(), protocol
    with self._lock:
      if key not in self._file_systems:
        self._file_systems[key] = _open(protocol, self._storage_options)
      return self._file_systems[key]

  def _pause(self, attempt: int) -> float:
    doubled = 2.0 ** min(attempt - 1, 64)  # A float ends at 2**1024.
    pause = min(self._wait_seconds * doubled, _LONGEST_WAIT_SECONDS)
    # What has failed together must not come back together.
    return pause * random.uniform(0.5, 1.0)


def _open(protocol: str, options: dict[str, Any]) -> Any:
  fsspec = imported("fsspec")
  if protocol == "s3":
    imported("s3fs")
    options = _without_retries(options, fsspec.config.conf.get("s3", {}))
  else:
    imported("aiohttp")
  # Not from fsspec's cache: this one is changed.
  system = fsspec.filesystem(protocol, skip_instance_cache=True, **options)
  system.retries = 1
  # With more, s3fs asks for the size of each object first.
  system.max_concurrency = 1
  # While nobody else is here: two that come at once would make two sessions.
  fsspec.asyn.sync(system.loop, system.set_session)
  return system


def _without_retries(
  options: dict[str, Any], configured: Mapping[str, Any]
) -> dict[str, Any]:
  """Leaves retrying to `Fetcher`: botocore's would multiply with its own."""
  config = {
    "max_pool_connections": _CONNECTIONS,
    **configured.get("config_kwargs", {}),
    **options.get("config_kwargs", {}),
    "retries": {"total_max_attempts": 1},
  }
  return {**options, "config_kwargs": config}


def _is_temporary(error: Exception) -> bool:
  status = getattr(error, "status", None)  # aiohttp's
  if isinstance(status, int) and status > 0:
    return status in (408, 429) or status >= 500
  return not isinstance(error, (*_NOT_TEMPORARY, *_credential_errors()))


def _credential_errors() -> tuple[type[Exception], ...]:
  botocore = sys.modules.get("botocore.exceptions")
  if botocore is None:
    return ()
  return (
    botocore.NoCredentialsError,
    botocore.PartialCredentialsError,
    botocore.ProfileNotFound,
  )


def _explained(name: str, error: Exception, attempts: int) -> OSError:
  kind = OSError
  for expected in (FileNotFoundError, PermissionError):
    if isinstance(error, expected):
      kind = expected
  tried = "" if attempts == 1 else f", in {attempts} attempts"
  return kind(f"cannot read {name}{tried}: {type(error).__name__}: {error}")
