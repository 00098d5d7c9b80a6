"""Gets the library from the cache, or builds it, and loads it once."""

from __future__ import annotations

import ctypes
import dataclasses
import logging
import os
import pathlib
import sys
import tempfile
import threading
import types

import tensorflow as tf

from tfecho.native import cache, compiler, target
from tfecho.native.errors import (
  CompilationError,
  NativeUnavailableError,
  NeedsBuildError,
)

_logger = logging.getLogger("tfecho")
_lock = threading.RLock()
_loaded: Library | None = None
_auto_failed = False
_failed_builds: dict[tuple[str, ...], str] = {}


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
  """
  return _load(building=True)


def available() -> bool:
  """Returns whether the native ops can be used here, without building.

  Loads the library if there is one: nothing less would prove it.
  """
  try:
    _load(building=False)
  except NativeUnavailableError:
    return False
  return True


def try_load() -> Library | None:
  """Returns the native library, or None and one warning in this process.

  This is what `implementation="auto"` asks, so the attempt, which may take a
  while, is made once.
  """
  global _auto_failed
  with _lock:
    if _loaded is None and not _auto_failed:
      try:
        load()
      except NativeUnavailableError as error:
        _auto_failed = True
        _logger.warning(
          "tfecho: the native ops can't be used, the slower graph"
          " implementation takes their place. Reason: %s\nTo get them, see"
          " `python -m tfecho.native build`; to silence this, ask for"
          ' implementation="graph".',
          error,
        )
    return _loaded


def find() -> tuple[pathlib.Path, int]:
  """Returns path and open descriptor of a verified library, without building.

  Raises:
    NativeUnavailableError: if there is none that may be loaded.
  """
  _check_platform()
  wanted = target.current()
  prebuilt = os.environ.get("TFECHO_LIBRARY")
  if not prebuilt:
    path = cache.library_path(wanted)
    return path, cache.open_verified(path, wanted)
  path = pathlib.Path(prebuilt).expanduser().absolute()
  try:
    return path, cache.open_verified(path, wanted)
  except NeedsBuildError as error:
    # Named by the user, so never replaced by something else.
    raise NativeUnavailableError(f"TFECHO_LIBRARY: {error}") from error


def find_or_build() -> tuple[pathlib.Path, int]:
  """As `find`, but builds the library if there is none, or a damaged one."""
  try:
    return find()
  except NeedsBuildError:
    command = compiler.find()
  wanted = target.current()
  path = cache.library_path(wanted)
  with cache.writing(path):
    try:
      return find()  # Another process built it in the meantime.
    except NeedsBuildError as reason:
      _build_once(command, wanted, path, reason)
  return find()


def _load(*, building: bool) -> Library:
  global _loaded
  with _lock:
    if _loaded is None:
      path, descriptor = find_or_build() if building else find()
      _loaded = _open_library(path, descriptor)
    return _loaded


def _open_library(path: pathlib.Path, descriptor: int) -> Library:
  # By the descriptor, the bytes that were verified are the ones loaded. It
  # stays open: the loader remembers its name, which must not come to mean
  # another file.
  name = f"/proc/self/fd/{descriptor}"
  try:
    return Library(tf.load_op_library(name), ctypes.CDLL(name), path)
  except (tf.errors.OpError, OSError) as error:
    os.close(descriptor)
    raise NativeUnavailableError(
      f"{path} can't be loaded: {error}"
    ) from error


def _build_once(
  command: list[str],
  wanted: target.Target,
  path: pathlib.Path,
  reason: NeedsBuildError,
) -> None:
  attempt = (wanted.key, *command)
  if attempt in _failed_builds:
    raise NativeUnavailableError(_failed_builds[attempt])
  # A warning, since a pause of half a minute must explain itself.
  _logger.warning(
    "tfecho: building the native ops for TensorFlow %s with %s, once, in about"
    " half a minute (%s)",
    wanted.tensorflow,
    command[0],
    reason,
  )
  try:
    _build(command, wanted, path)
  except CompilationError as error:
    _failed_builds[attempt] = f"{error.summary}, as shown before"
    raise


def _build(
  command: list[str], wanted: target.Target, path: pathlib.Path
) -> None:
  with tempfile.TemporaryDirectory(prefix="tfecho-") as folder:
    built = pathlib.Path(folder, path.name)
    compiler.build(
      command,
      target.SOURCES,
      built,
      target.compile_flags(),
      target.link_flags(),
    )
    cache.publish(built, path, wanted, compiler.version(command))


def _check_platform() -> None:
  if sys.platform != "linux":
    raise NativeUnavailableError(
      f"the native ops are for Linux, this is {sys.platform}: use"
      ' implementation="graph"'
    )
