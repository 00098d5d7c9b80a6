"""Finds the library, or has it built, and loads it once for the process."""

from __future__ import annotations

import ctypes
import dataclasses
import logging
import os
import pathlib
import threading
import types

import tensorflow as tf

from tfecho.native import building, cache, manifest
from tfecho.native.errors import NativeUnavailableError, printable

_logger = logging.getLogger("tfecho")
_lock = threading.RLock()
_loaded: Library | None = None
_given_up = False


@dataclasses.dataclass(frozen=True)
class Library:
  """The native library, loaded into this process.

  Attributes:
    ops: module with one Python function for every op.
    c: the same library for `ctypes`, for functions that are no ops.
    path: the file.
  """

  ops: types.ModuleType
  c: ctypes.CDLL
  path: pathlib.Path


def load() -> Library:
  """Returns the native library, loaded once; builds it if there is none.

  Building takes about half a minute, once for a version of TensorFlow.

  Raises:
    NativeUnavailableError: if that is not possible here; says why.

  Example:
    >>> import tfecho
    >>> library = tfecho.native.load()
    >>> library is tfecho.native.load()
    True
  """
  return _load(build=True)


def available() -> bool:
  """Returns whether the native ops can be used here, without building.

  Loads the library if there is one: nothing less would prove it.
  """
  try:
    _load(build=False)
  except NativeUnavailableError:
    return False
  return True


def try_load() -> Library | None:
  """Returns the native library, or None after one warning in this process.

  What `implementation="auto"` asks for every dataset. A failure is final, so
  that the same program does not try again and again, unless `load` succeeds.
  """
  global _given_up
  with _lock:
    if _loaded is None and not _given_up:
      try:
        load()
      except NativeUnavailableError as error:
        _given_up = True
        _logger.warning(
          "tfecho: falling back to the graph implementation, which is slower"
          " and does not keep copies apart, so that batches may hold an element"
          " twice, since the native one can't be used: %s\nOnce that is"
          " mended, `python -m tfecho.native build` gets it;"
          " implementation='graph' silences this.",
          printable(error),
        )
    return _loaded


def _load(*, build: bool) -> Library:
  global _loaded
  with _lock:
    if _loaded is None:
      try:
        _loaded = _open(building.find_or_build() if build else cache.find())
      except OSError as error:  # A full disk, for instance.
        raise NativeUnavailableError(str(error)) from error
    return _loaded


def _open(file: manifest.VerifiedFile) -> Library:
  # By descriptor, what was verified is what is loaded, whatever happens to the
  # path. It stays open: the system's loader remembers this name, which must
  # not come to mean another file.
  name = f"/proc/self/fd/{file.descriptor}"
  try:
    return Library(tf.load_op_library(name), ctypes.CDLL(name), file.path)
  except (tf.errors.OpError, OSError) as error:
    os.close(file.descriptor)
    raise NativeUnavailableError(
      f"{file.path} can't be loaded: {error}"
    ) from error
