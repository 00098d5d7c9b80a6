"""What is recorded beside a library, and the check that it still holds.

    libtfecho-....so
    libtfecho-....so.json    its manifest

The system's loader does not notice that a library was cut in half: the process
dies when it touches what is missing. So size and SHA-256 are compared first.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pathlib

from tfecho.native import trust
from tfecho.native.errors import NeedsBuildError
from tfecho.native.target import Target


@dataclasses.dataclass(frozen=True)
class Manifest:
  """What is known about a library.

  Attributes:
    size: in bytes.
    sha256: of its content, in hexadecimal digits.
    compiler: how the compiler named itself.
    target: for what it was built, and from which sources.
  """

  size: int
  sha256: str
  compiler: str
  target: Target

  @classmethod
  def describe(cls, content: bytes, compiler: str, target: Target) -> Manifest:
    """Returns the manifest of a library with this content."""
    digest = hashlib.sha256(content).hexdigest()
    return cls(len(content), digest, compiler, target)

  @classmethod
  def parse(cls, text: bytes) -> Manifest:
    """Returns what `dump` wrote; ValueError or TypeError if it is not that."""
    fields = dict(json.loads(text))
    return cls(target=Target(**fields.pop("target", {})), **fields)

  def dump(self) -> bytes:
    """Returns the manifest as JSON."""
    return json.dumps(dataclasses.asdict(self), indent=2).encode()


@dataclasses.dataclass(frozen=True)
class VerifiedFile:
  """A library that is whole, trusted, and fits; held open.

  Attributes:
    path: where it was found.
    descriptor: of the very file that was verified. To be closed by its user.
    manifest: what is known about it.
  """

  path: pathlib.Path
  descriptor: int
  manifest: Manifest


def path_for(library: pathlib.Path) -> pathlib.Path:
  """Returns where the manifest of a library lies."""
  return library.with_name(library.name + ".json")


def verify(path: pathlib.Path, target: Target) -> VerifiedFile:
  """Returns the library at `path`, open, if it may be loaded for `target`.

  Raises:
    NeedsBuildError: if it is missing, damaged, or for another target.
    NativeUnavailableError: if it must not be trusted, or can't be read.
  """
  try:
    with trust.folder(path.parent) as folder:
      manifest = _read(path_for(path), folder)
      _check_target(path, manifest.target, target)
      descriptor = trust.open_file(path, folder)
  except FileNotFoundError as error:
    raise NeedsBuildError(f"{path} is not there, or not complete") from error
  try:
    _check_content(path, descriptor, manifest)
  except BaseException:
    os.close(descriptor)
    raise
  return VerifiedFile(path, descriptor, manifest)


def _read(path: pathlib.Path, folder: int) -> Manifest:
  with open(trust.open_file(path, folder), "rb") as file:
    text = file.read()
  try:
    return Manifest.parse(text)
  except (ValueError, TypeError) as error:
    raise NeedsBuildError(f"{path} is damaged: {error}") from error


def _check_target(path: pathlib.Path, built_for: Target, here: Target) -> None:
  for field in dataclasses.fields(Target):
    found = getattr(built_for, field.name)
    wanted = getattr(here, field.name)
    if found != wanted:
      raise NeedsBuildError(
        f"{path} was built for another {field.metadata['title']}: {found},"
        f" here {wanted}"
      )


def _check_content(
  path: pathlib.Path, descriptor: int, manifest: Manifest
) -> None:
  with open(descriptor, "rb", closefd=False) as file:
    content = file.read()
  if len(content) != manifest.size:
    raise NeedsBuildError(
      f"{path} is damaged: {len(content)} bytes, of {manifest.size}"
    )
  if hashlib.sha256(content).hexdigest() != manifest.sha256:
    raise NeedsBuildError(f"{path} is damaged: its checksum is wrong")
