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
  """Epoch, and steps that were made in it."""

  epoch: int = 0
  step: int = 0


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

  def restore(self, checkpoint: tf.train.Checkpoint) -> bool:
    """Restores the newest backup, and returns whether there is one."""
    backups = self._complete()
    if not backups:
      return False
    status = checkpoint.read(str(backups[-1] / "state"))
    try:
      status.assert_existing_objects_matched().assert_consumed()
    except AssertionError as error:
      raise ValueError(
        f"the backup in {self._directory} is not one of this model: {error}"
      ) from error
    return True

  def write(self, checkpoint: tf.train.Checkpoint, position: Position) -> None:
    """Writes a backup, and removes those before it."""
    older = self._complete()
    number = _number(older[-1]) + 1 if older else 0
    unfinished = self._directory / "unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    _write_state(checkpoint, unfinished / "state")
    (unfinished / "position.json").write_text(
      json.dumps(dataclasses.asdict(position)), encoding="utf-8"
    )
    # What the name stands for must be on the disk before the name is.
    for path in unfinished.iterdir():
      _sync(path)
    unfinished.rename(self._directory / f"backup-{number}")
    _sync(self._directory)
    for path in older:
      shutil.rmtree(path)

  def clear(self) -> None:
    """Removes all backups."""
    # The newest one last: if this is interrupted, it still counts.
    for path in self._complete():
      shutil.rmtree(path)
    shutil.rmtree(self._directory / "unfinished", ignore_errors=True)

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


def _write_state(checkpoint: tf.train.Checkpoint, path: pathlib.Path) -> None:
  try:
    checkpoint.write(str(path))
  except tf.errors.FailedPreconditionError as error:
    raise ValueError(
      "the position in `data` can't be saved, since a stage of it has a state"
      " that TensorFlow can't see: give random numbers to stateless operations"
      f" instead, as `Pipeline` does. TensorFlow says: {error.message}"
    ) from error


def _sync(path: pathlib.Path) -> None:
  descriptor = os.open(path, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)
