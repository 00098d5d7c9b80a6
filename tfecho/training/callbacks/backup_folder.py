"""A folder of backups of which there is always a complete one."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
import shutil

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Position:
  """Where a training is.

  Attributes:
    epoch: counted from 0.
    step: how many were made in that epoch.
    data_pass: which one over the data it is, counted from 1.
  """

  epoch: int = 0
  step: int = 0
  data_pass: int = 1


class BackupFolder:
  """The folder of backups, of which the newest counts."""

  def __init__(self, directory: pathlib.Path):
    self._directory = directory

  def position(self) -> Position | None:
    """Returns that of the newest backup, if there is one."""
    backups = self._complete()
    if not backups:
      return None
    text = (backups[-1] / "position.json").read_text(encoding="utf-8")
    return Position(**json.loads(text))

  def restore(self, checkpoint: tf.train.Checkpoint) -> None:
    """Restores the newest backup."""
    try:
      status = checkpoint.read(str(self._complete()[-1] / "state"))
      status.expect_partial()  # Errors, rather than a log of what is missing.
      status.assert_existing_objects_matched().assert_consumed()
    except (AssertionError, ValueError) as error:
      raise ValueError(
        f"the backup in {self._directory} is not one of this model: {error}"
      ) from error

  def write(self, checkpoint: tf.train.Checkpoint, position: Position) -> None:
    """Writes a backup, and removes those before it."""
    older = self._complete()
    number = _number(older[-1]) + 1 if older else 0
    unfinished = self._no_backup()
    unfinished.mkdir(parents=True)
    checkpoint.write(str(unfinished / "state"))
    (unfinished / "position.json").write_text(
      json.dumps(dataclasses.asdict(position)), encoding="utf-8"
    )
    # What the name stands for must be on the disk before the name is.
    for path in (*unfinished.iterdir(), unfinished):
      _sync(path)
    unfinished.rename(self._directory / f"backup-{number}")
    _sync(self._directory)
    self._remove(older)

  def clear(self) -> None:
    """Removes all backups."""
    self._remove(self._complete())
    self._no_backup()

  def _remove(self, backups: list[pathlib.Path]) -> None:
    for path in backups:
      # Renamed first, since half of a backup must not pass for one.
      shutil.rmtree(path.rename(self._no_backup()))

  def _no_backup(self) -> pathlib.Path:
    """Returns the path for what is not a backup yet or any more."""
    path = self._directory / "unfinished"
    shutil.rmtree(path, ignore_errors=True)
    return path

  def _complete(self) -> list[pathlib.Path]:
    """Complete backups, the newest one last."""
    return sorted(
      (
        path
        for path in self._directory.glob("backup-*")
        if re.fullmatch(r"backup-\d+", path.name)
      ),
      key=_number,
    )


def _number(backup: pathlib.Path) -> int:
  return int(backup.name.split("-")[1])


def _sync(path: pathlib.Path) -> None:
  descriptor = os.open(path, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)
