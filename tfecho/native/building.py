"""Builds the library into the cache, once among all processes."""

from __future__ import annotations

import logging
import os
import pathlib
import tempfile

from tfecho.native import cache, compiler, target
from tfecho.native.errors import (
  CompilationError,
  NativeUnavailableError,
  NeedsBuildError,
)
from tfecho.native.manifest import Manifest, VerifiedFile

_logger = logging.getLogger("tfecho")
_failures: dict[str, str] = {}


def find_or_build() -> VerifiedFile:
  """Returns the library as `cache.find` does, after building it if need be.

  Raises:
    NativeUnavailableError: if there is no compiler or no place to write to.
    CompilationError: if the compiler fails. If it has failed before, with the
      same sources, it is not called again, and its words are left out.
  """
  try:
    return cache.find()
  except NeedsBuildError as reason:
    _build_because(str(reason))
  return cache.find()


def _build_because(reason: str) -> None:
  try:
    _build(reason)
  except CompilationError:
    raise
  except NativeUnavailableError as error:
    raise NativeUnavailableError(
      f"{reason}, and can't be built here: {error}"
    ) from error


def _build(reason: str) -> None:
  command = compiler.find()
  here = target.current()
  attempt = f"{here.key} {command}"
  _refuse_repetition(_failures.get(attempt))
  with cache.turn(cache.library_path(here)) as turn:
    if _built_meanwhile():
      return
    _refuse_repetition(turn.failure_of(attempt))
    # A warning: a pause of half a minute has to explain itself.
    _logger.warning(
      "tfecho: building the native ops for TensorFlow %s with %s, once, for"
      " about half a minute (%s)",
      here.tensorflow,
      command[0],
      reason,
    )
    try:
      _compile(command, here)
    except CompilationError as error:
      _failures[attempt] = error.summary
      turn.note_failure(attempt, error.summary)
      raise


def _built_meanwhile() -> bool:
  try:
    os.close(cache.find().descriptor)
  except NeedsBuildError:
    return False
  return True


def _refuse_repetition(summary: str | None) -> None:
  if summary is not None:
    raise CompilationError(f"{summary}; its words were shown before")


def _compile(command: list[str], here: target.Target) -> None:
  with tempfile.TemporaryDirectory(prefix="tfecho-") as folder:
    built = pathlib.Path(folder, "library.so")
    compiler.build(
      command,
      target.SOURCES,
      built,
      target.compile_flags(),
      target.link_flags(),
    )
    content = built.read_bytes()
  if target.hash_of(target.SOURCES) != here.sources:
    raise CompilationError("the C++ sources changed while being compiled")
  manifest = Manifest.describe(content, compiler.version(command), here)
  cache.publish(cache.library_path(here), content, manifest)
