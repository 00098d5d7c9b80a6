"""Opens files and folders that nobody else could have changed.

A library that is loaded runs with all rights of the user, so it has to come
from the user or from root. Owner and mode are read from the open descriptor,
and files are opened relative to their open folder: whatever somebody does to
the path afterwards, what was checked is what is used.
"""

from __future__ import annotations

import os
import pathlib
import stat

from tfecho.native.errors import NativeUnavailableError

ROOT = 0
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def open_folder(path: pathlib.Path) -> int:
  """Returns a descriptor of a folder; see `open_file`."""
  return _open(path, os.O_RDONLY | os.O_DIRECTORY, None)


def open_file(path: pathlib.Path, folder: int) -> int:
  """Returns a descriptor, for reading, of a file in an open folder.

  Args:
    path: the file. Only its name counts, the rest is for messages.
    folder: descriptor of the folder it is in.

  Raises:
    FileNotFoundError: if there is none.
    NativeUnavailableError: if it can't be read, is no regular file, is owned
      by somebody who is neither the user nor root, or if others may write it.
  """
  # Without O_NONBLOCK, opening a named pipe would wait for a writer.
  descriptor = _open(path, os.O_RDONLY | os.O_NONBLOCK, folder)
  if not stat.S_ISREG(os.fstat(descriptor).st_mode):
    os.close(descriptor)
    raise NativeUnavailableError(f"{path} is not a regular file")
  return descriptor


def _open(path: pathlib.Path, flags: int, folder: int | None) -> int:
  name = path if folder is None else path.name
  try:
    descriptor = os.open(name, flags | os.O_CLOEXEC, dir_fd=folder)
  except FileNotFoundError:
    raise
  except OSError as error:
    raise NativeUnavailableError(
      f"{path} can't be read: {error.strerror}"
    ) from error
  reason = _distrust(os.fstat(descriptor))
  if reason:
    os.close(descriptor)
    raise NativeUnavailableError(f"refused: {path} {reason}")
  return descriptor


def _distrust(status: os.stat_result) -> str | None:
  user = os.geteuid()
  if status.st_uid not in (user, ROOT):
    return (
      f"belongs to user {status.st_uid}, neither to you (user {user}) nor to"
      " root"
    )
  if status.st_mode & _OTHERS_WRITE:
    mode = stat.S_IMODE(status.st_mode)
    return f"can be written by others (mode {mode:04o}; `chmod go-w` helps)"
  return None
