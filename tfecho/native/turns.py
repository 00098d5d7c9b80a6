"""Among processes that start together, one builds and the others wait.

Those that waited learn how it ended. If the compiler failed, they don't try
the same again, each in its turn, with the same words eight times on the
screen: the lock file holds a note of the failure.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import pathlib
from collections.abc import Iterator

_logger = logging.getLogger("tfecho")


class Turn:
  """The right to build, held by one process at a time.

  Args:
    lock: the lock file, locked.
    waited: whether another process had its turn just before.
  """

  def __init__(self, lock: io.FileIO, *, waited: bool):
    """Starts without a note, unless the process before left one."""
    self._lock = lock
    if not waited:
      lock.truncate(0)

  def failure_of(self, attempt: str) -> str | None:
    """Returns how the same attempt failed while this process waited."""
    self._lock.seek(0)
    noted = os.fsdecode(self._lock.readall())
    failed, _, summary = noted.partition("\n")
    return summary if failed == attempt else None

  def note_failure(self, attempt: str, summary: str) -> None:
    """Tells those who wait that `attempt`, which is one line, failed."""
    self._lock.seek(0)
    self._lock.truncate()
    # A path in it may hold any bytes.
    self._lock.write(os.fsencode(f"{attempt}\n{summary}"))


def open_lock(path: pathlib.Path) -> io.FileIO:
  """Returns the lock file at `path`, open; makes it if it is missing."""
  flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
  # Who can read it can lock it, and keep everybody else from building.
  return io.FileIO(os.open(path, flags, 0o600), "r+")


@contextlib.contextmanager
def take(lock: io.FileIO) -> Iterator[Turn]:
  """Waits for the turn. The system ends that of a process which dies."""
  waited = _flock(lock, "LOCK_EX")
  try:
    yield Turn(lock, waited=waited)
  finally:
    # Closing is not enough: a process forked in the meantime shares the lock.
    _flock(lock, "LOCK_UN")


def _flock(lock: io.FileIO, operation: str) -> bool:
  """Locks or unlocks; returns whether that meant waiting for somebody."""
  import fcntl  # Not on Windows, where this module can still be imported.

  try:
    fcntl.flock(lock, getattr(fcntl, operation) | fcntl.LOCK_NB)
  except BlockingIOError:
    _logger.warning("tfecho: waiting for another process that builds")
    fcntl.flock(lock, getattr(fcntl, operation))
    return True
  except OSError:
    # A file system without locks. Several processes may build the same
    # library at once then, and each replaces the whole of it.
    pass
  return False
