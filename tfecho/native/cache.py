"""Where built libraries are kept, and how one is known to be whole.

    <cache>/libtfecho-<TensorFlow's version>-<key>.so
    <cache>/libtfecho-<TensorFlow's version>-<key>.so.json   its manifest
    <cache>/libtfecho-<TensorFlow's version>-<key>.so.lock   while building

The manifest records size and SHA-256 of the library, for what it was built,
and by which compiler. It is written last: a library without one does not
count. Loading a damaged library would kill the process inside `dlopen`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import tempfile
from collections.abc import Iterator
from typing import Any

from tfecho.native import trust
from tfecho.native.errors import NativeUnavailableError, NeedsBuildError
from tfecho.native.target import Target

_OURS = re.compile(r"libtfecho-.+\.so(\.json|\.lock|\.[^.]+\.tmp)?")


def folder() -> pathlib.Path:
  """Returns the folder of the cache, which may not exist yet.

  `TFECHO_CACHE_DIR`, else `tfecho` in `XDG_CACHE_HOME`, else in `~/.cache`.
  """
  own = os.environ.get("TFECHO_CACHE_DIR")
  if own:
    return pathlib.Path(own).expanduser().absolute()
  shared = os.environ.get("XDG_CACHE_HOME")
  if shared and os.path.isabs(shared):
    return pathlib.Path(shared, "tfecho")
  return pathlib.Path("~/.cache/tfecho").expanduser().absolute()


def library_path(target: Target) -> pathlib.Path:
  """Returns where the library for `target` is kept, once it is built."""
  return folder() / f"libtfecho-{target.tensorflow}-{target.key}.so"


def manifest_path(library: pathlib.Path) -> pathlib.Path:
  """Returns the path of a library's manifest, which lies beside it."""
  return library.with_name(library.name + ".json")


def open_verified(path: pathlib.Path, target: Target) -> int:
  """Returns a descriptor of a library that is whole, trusted and for `target`.

  Raises:
    NeedsBuildError: if it is missing, damaged, or for another target.
    NativeUnavailableError: if it must not be trusted or can't be read.
  """
  try:
    beside = trust.open_folder(path.parent)
  except FileNotFoundError as error:
    raise NeedsBuildError(f"{path} does not exist") from error
  try:
    manifest = _read_manifest(path, beside)
    _check_target(path, manifest, target)
    return _open_library(path, beside, manifest)
  finally:
    os.close(beside)


def read_manifest(path: pathlib.Path) -> dict[str, Any]:
  """Returns the manifest of the library at `path`."""
  beside = trust.open_folder(path.parent)
  try:
    return _read_manifest(path, beside)
  finally:
    os.close(beside)


def publish(
  built: pathlib.Path, path: pathlib.Path, target: Target, compiler: str
) -> None:
  """Puts a library into the cache, so that nobody ever sees half of it.

  Args:
    built: the library that was just made.
    path: its place in the cache.
    target: for what it was built.
    compiler: how the compiler names itself.
  """
  content = built.read_bytes()
  manifest = {
    "size": len(content),
    "sha256": hashlib.sha256(content).hexdigest(),
    "compiler": compiler,
    "target": dataclasses.asdict(target),
  }
  _replace(path, content)
  _replace(manifest_path(path), json.dumps(manifest, indent=2).encode())


@contextlib.contextmanager
def writing(path: pathlib.Path) -> Iterator[None]:
  """Holds the right to write the library at `path`, among all processes.

  Makes the folder if it is missing. The system gives the lock back when its
  holder ends, however it ends.

  Raises:
    NativeUnavailableError: if the folder can't be made or written, or must
      not be trusted.
  """
  try:
    # Readable by others, so that one user's library can serve them all.
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    os.close(trust.open_folder(path.parent))
    lock = os.open(
      path.with_name(path.name + ".lock"),
      os.O_RDWR | os.O_CREAT | os.O_CLOEXEC,
      0o644,
    )
  except OSError as error:
    raise NativeUnavailableError(
      f"the cache folder {path.parent} can't be written ({error.strerror}):"
      " set TFECHO_CACHE_DIR to one that can"
    ) from error
  try:
    _wait_for(lock)
    yield
  finally:
    os.close(lock)


def clean() -> list[pathlib.Path]:
  """Removes everything that this module wrote, and returns the paths."""
  where = folder()
  ours = [p for p in sorted(where.glob("*")) if _OURS.fullmatch(p.name)]
  for path in ours:
    path.unlink()
  return ours


def _wait_for(lock: int) -> None:
  import fcntl  # Not on Windows, where this module can still be imported.

  try:
    fcntl.flock(lock, fcntl.LOCK_EX)
  except OSError:
    # A file system without locks: processes may build the same library more
    # than once, and each replaces the whole.
    pass


def _read_manifest(path: pathlib.Path, beside: int) -> dict[str, Any]:
  where = manifest_path(path)
  try:
    with open(trust.open_file(where, beside), "rb") as file:
      manifest = json.load(file)
    if not isinstance(manifest["target"], dict):
      raise TypeError("`target` is no object")
    return manifest
  except FileNotFoundError as error:
    raise NeedsBuildError(f"{where} does not exist") from error
  except (ValueError, TypeError, LookupError) as error:
    raise NeedsBuildError(f"{where} is damaged: {error!r}") from error


def _check_target(
  path: pathlib.Path, manifest: dict[str, Any], target: Target
) -> None:
  built_for = manifest["target"]
  for name, wanted in dataclasses.asdict(target).items():
    found = built_for.get(name)
    if found != wanted:
      raise NeedsBuildError(
        f"{path} was built for another {name}: {found!r}, here {wanted!r}"
      )


def _open_library(
  path: pathlib.Path, beside: int, manifest: dict[str, Any]
) -> int:
  try:
    descriptor = trust.open_file(path, beside)
  except FileNotFoundError as error:
    raise NeedsBuildError(f"{path} does not exist") from error
  with open(descriptor, "rb", closefd=False) as file:
    content = file.read()
  found = len(content), hashlib.sha256(content).hexdigest()
  wanted = manifest.get("size"), manifest.get("sha256")
  if found != wanted:
    os.close(descriptor)
    raise NeedsBuildError(
      f"{path} is damaged: {found[0]} bytes with SHA-256 {found[1][:12]},"
      f" expected {wanted[0]} bytes with {str(wanted[1])[:12]}"
    )
  return descriptor


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
