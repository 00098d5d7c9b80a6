"""The folder where libraries are kept.

    libtfecho-<TensorFlow's version>-<key>.so
    libtfecho-<TensorFlow's version>-<key>.so.json    see `manifest`
    libtfecho-<TensorFlow's version>-<key>.so.lock    see `turns`
    libtfecho-<TensorFlow's version>-<key>.so.<...>.tmp    in the making

Every file appears whole, and the manifest last, so readers need no lock.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator

from tfecho.native import trust, turns
from tfecho.native.errors import NativeUnavailableError, NeedsBuildError
from tfecho.native.manifest import Manifest, VerifiedFile, path_for, verify
from tfecho.native.target import Target, current

_OURS = re.compile(r"libtfecho-.+\.so(\.json|\.lock)?(\.[^.]+\.tmp)?")


def folder() -> pathlib.Path:
  """Returns the folder of the cache, which may not exist yet.

  It is `TFECHO_CACHE_DIR`, else `tfecho` in `XDG_CACHE_HOME`, else
  `~/.cache/tfecho`.

  Raises:
    NativeUnavailableError: if the user has no home.
  """
  named = os.environ.get("TFECHO_CACHE_DIR")
  if named:
    return absolute(named)
  shared = os.environ.get("XDG_CACHE_HOME", "")
  # By the XDG specification, a relative path does not count.
  return absolute(shared if os.path.isabs(shared) else "~/.cache") / "tfecho"


def absolute(path: str) -> pathlib.Path:
  """Returns the absolute path that a variable of the environment names."""
  try:
    return pathlib.Path(path).expanduser().absolute()
  except RuntimeError as error:
    raise NativeUnavailableError(
      f"{path}: {error} Set TFECHO_CACHE_DIR to a folder of yours"
    ) from error


def library_path(target: Target) -> pathlib.Path:
  """Returns where the library for `target` is kept, once it is built."""
  return folder() / f"libtfecho-{target.tensorflow}-{target.key}.so"


def find() -> VerifiedFile:
  """Returns the library to load: `TFECHO_LIBRARY`, else from the cache.

  Raises:
    NeedsBuildError: if there is none, but one can be built.
    NativeUnavailableError: if there is one that must not be loaded, or the
      native ops are not for this system.
  """
  if sys.platform != "linux":
    raise NativeUnavailableError(
      f"the native ops are for Linux, this is {sys.platform}"
    )
  here = current()
  named = os.environ.get("TFECHO_LIBRARY")
  if not named:
    return verify(library_path(here), here)
  try:
    return verify(absolute(named), here)
  except NeedsBuildError as error:
    # Named by the user, so never replaced by something else.
    raise NativeUnavailableError(f"TFECHO_LIBRARY: {error}") from error


def publish(path: pathlib.Path, content: bytes, manifest: Manifest) -> None:
  """Puts a library into the cache; nobody ever sees half of it."""
  _replace(path, content)
  _replace(path_for(path), manifest.dump())


@contextlib.contextmanager
def workshop(path: pathlib.Path) -> Iterator[pathlib.Path]:
  """Gives a folder to build the library at `path` in, and removes it.

  In the cache, to which nobody else can write, as anybody may to a `TMPDIR`.
  """
  with tempfile.TemporaryDirectory(
    ".tmp", path.name + ".", path.parent
  ) as folder:
    yield pathlib.Path(folder)


def clean() -> list[pathlib.Path]:
  """Removes all that this module wrote, and returns the paths."""
  ours = [p for p in sorted(folder().glob("*")) if _OURS.fullmatch(p.name)]
  for path in ours:
    if path.is_dir():  # A build that was killed left it.
      shutil.rmtree(path)
    else:
      path.unlink()
  return ours


@contextlib.contextmanager
def turn(path: pathlib.Path) -> Iterator[turns.Turn]:
  """Waits until no other process builds the library at `path`.

  Makes the folder if it is missing.

  Raises:
    NativeUnavailableError: if the folder can't be made or written, or must
      not be trusted.
  """
  try:
    # Others may read it, so that a library built by root can serve everybody.
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    with trust.folder(path.parent):
      lock = turns.open_lock(path.with_name(path.name + ".lock"))
  except OSError as error:
    raise NativeUnavailableError(
      f"the cache folder {path.parent} can't be written ({error.strerror}):"
      " set TFECHO_CACHE_DIR to one that can"
    ) from error
  with lock, turns.take(lock) as taken:
    yield taken


def _replace(path: pathlib.Path, content: bytes) -> None:
  descriptor, name = tempfile.mkstemp(".tmp", path.name + ".", path.parent)
  try:
    with open(descriptor, "wb") as file:
      file.write(content)
    os.chmod(name, 0o644)
    os.replace(name, path)
  except BaseException:
    os.unlink(name)
    raise
