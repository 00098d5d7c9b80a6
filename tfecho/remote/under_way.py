"""Fetches under way, which have to be over before Python is finalized.

  with fetches_under_way:
    fetches_under_way.sleep(seconds)
    contents = sync(loop, fetches_under_way.awaiting(coroutine))

A thread that waits for something while Python is finalized never gets back into
Python, and whoever waits for that thread waits for ever. That is what an
iterator does that is left behind at the end of a program, with a read under
way.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from typing import Any

_POLL_SECONDS = 0.05


class FetchesUnderWay:
  """Counts fetches, and gives them up when the program ends."""

  def __init__(self) -> None:
    self.forget()

  def forget(self) -> None:
    """Starts anew, as after a fork: the threads are those of the parent."""
    self._changed = threading.Condition()
    self._count = 0
    self._tasks: set[asyncio.Task] = set()
    self._ending = threading.Event()

  def __enter__(self) -> FetchesUnderWay:
    with self._changed:
      self._count += 1
    return self

  def __exit__(self, *unused_error: Any) -> None:
    with self._changed:
      self._count -= 1
      self._changed.notify_all()

  def sleep(self, seconds: float) -> None:
    """Waits, but no longer than the program lasts."""
    self._ending.wait(seconds)

  async def awaiting(self, coroutine: Coroutine) -> Any:
    """Awaits `coroutine`, but no longer than the program lasts."""
    task = asyncio.current_task()
    assert task is not None
    self._tasks.add(task)
    try:
      return await coroutine
    finally:
      self._tasks.discard(task)

  def check(self) -> None:
    """Raises OSError if the program ends."""
    if self._ending.is_set():
      raise OSError("the program ends")

  def end(self) -> None:
    """Gives up all fetches, and waits until they have returned."""
    self._ending.set()
    with self._changed:
      while self._count:
        for task in list(self._tasks):
          task.get_loop().call_soon_threadsafe(task.cancel)
        # One may be on its way to become a task.
        self._changed.wait(_POLL_SECONDS)
    # What has returned is still on its way out of Python.
    threading.Event().wait(_POLL_SECONDS)


fetches_under_way = FetchesUnderWay()
atexit.register(fetches_under_way.end)
if hasattr(os, "register_at_fork"):  # not on Windows
  os.register_at_fork(after_in_child=fetches_under_way.forget)
