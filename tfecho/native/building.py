"""Builds the library into the cache, once among all processes."""

from __future__ import annotations

import logging
import os
import pathlib

from tfecho.native import cache, compiler, target, trust
from tfecho.native.errors import (
  CompilationError,
  NativeUnavailableError,
  NeedsBuildError,
  printable,
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
      printable(command[0]),
      printable(reason),
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
  library = cache.library_path(here)
  with cache.workshop(library) as folder:
    compiler.build(
      command,
      target.SOURCES,
      folder / "library.so",
      target.compile_flags(),
      target.link_flags(),
    )
    content = _content(folder / "library.so")
  if target.hash_of(target.SOURCES) != here.sources:
    raise CompilationError("the C++ sources changed while being compiled")
  manifest = Manifest.describe(content, compiler.version(command), here)
  cache.publish(library, content, manifest)


def _content(path: pathlib.Path) -> bytes:
  # Of the folder that the compiler wrote to, whatever its path means by now.
  with trust.folder(path.parent) as folder:
    descriptor = os.open(path.name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
  with open(descriptor, "rb") as file:
    return file.read()
