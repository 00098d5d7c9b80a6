"""Opens files and folders that nobody else could have changed.

A library that is loaded runs with all rights of the user, so it has to come
from the user or from root. Owner and mode are read from the open descriptor,
and files are opened relative to their open folder: whatever somebody does to
the path afterwards, what was checked is what is used. That is also why the
folders above need no check.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import stat
from collections.abc import Iterator

from tfecho.native.errors import NativeUnavailableError

ROOT = 0


@contextlib.contextmanager
def folder(path: pathlib.Path) -> Iterator[int]:
  """Gives a descriptor of a folder, for `open_file`.

  Raises:
    FileNotFoundError: if there is none.
    NativeUnavailableError: if it can't be read, belongs to somebody who is
      neither the user nor root, or can be written by others.
  """
  descriptor = _open(path, os.O_DIRECTORY, None)
  try:
    yield descriptor
  finally:
    os.close(descriptor)


def open_file(path: pathlib.Path, folder: int) -> int:
  """Returns a descriptor of a file, for reading; the caller closes it.

  Args:
    path: the file. Only its name counts; the rest is for messages.
    folder: descriptor of the folder that it is in.

  Raises:
    FileNotFoundError: if there is none.
    NativeUnavailableError: as for `folder`, or if it is no regular file.
  """
  # Without O_NONBLOCK, opening a named pipe would wait for a writer.
  descriptor = _open(path, os.O_NONBLOCK, folder)
  if stat.S_ISREG(os.fstat(descriptor).st_mode):
    return descriptor
  os.close(descriptor)
  raise NativeUnavailableError(f"refused: {path} is not a regular file")


def _open(path: pathlib.Path, flags: int, folder: int | None) -> int:
  name = path if folder is None else path.name
  flags |= os.O_RDONLY | os.O_CLOEXEC
  try:
    descriptor = os.open(name, flags, dir_fd=folder)
  except FileNotFoundError:
    raise
  except OSError as error:
    raise NativeUnavailableError(
      f"{path} can't be read: {error.strerror}"
    ) from error
  distrust = _distrust(os.fstat(descriptor))
  if distrust:
    os.close(descriptor)
    raise NativeUnavailableError(f"refused: {path} {distrust}")
  return descriptor


def _distrust(status: os.stat_result) -> str | None:
  user = os.geteuid()
  if status.st_uid not in (user, ROOT):
    return (
      f"belongs to user {status.st_uid}, neither to you (user {user}) nor to"
      " root"
    )
  if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
    mode = stat.S_IMODE(status.st_mode)
    return f"can be written by others (mode {mode:04o}; `chmod go-w` helps)"
  return None
