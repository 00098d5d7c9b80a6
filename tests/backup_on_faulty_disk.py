"""A training whose disk fails under its backups, and is mended.

As a script, `python backup_on_faulty_disk.py DIRECTORY FAULT`, in a namespace
of its own: it mounts a small disk, and prints what the training saw, with and
without the fault, and what the error was.
"""

import json
import pathlib
import subprocess
import sys

import keras
import resumable_training as training

from tfecho.training import BackupAndRestore

FAULT_STEP = 15
EVERY_STEPS = 3


def mount(disk, *options):
  subprocess.run(["mount", *options, str(disk)], check=True)


def fill(disk):
  """Leaves no room on a disk."""
  with (disk / "filling").open("wb", buffering=0) as file:
    try:
      while True:
        file.write(bytes(1024))
    except OSError:
      pass


BREAK = {"full": fill, "read-only": lambda d: mount(d, "-o", "remount,ro")}
MEND = {
  "full": lambda disk: (disk / "filling").unlink(),
  "read-only": lambda disk: mount(disk, "-o", "remount,rw"),
}


class Breaking(keras.callbacks.Callback):
  """Breaks the disk in a step."""

  def __init__(self, action, step):
    super().__init__()
    self._action, self._steps_left = action, step

  def on_train_batch_begin(self, batch, logs=None):
    self._steps_left -= 1
    if self._steps_left == 0:
      self._action()


def run(directory, callbacks=()):
  """Trains; returns the batches that it saw, and the error if there was one."""
  seen, error = [], None
  data, options = training.make_data("native")
  backup = BackupAndRestore(directory, data=data, every_steps=EVERY_STEPS)
  model = training.make_model(lambda batch: seen.append(batch.tolist()))
  try:
    training.train(model, backup, callbacks=callbacks, **options)
  except Exception as caught:
    error = f"{type(caught).__name__}: {caught}"
  return seen, error


def main(directory, fault):
  disk = pathlib.Path(directory, "disk")
  disk.mkdir()
  mount(disk, "-t", "tmpfs", "-o", "size=1m", "tmpfs")
  whole, _ = run(pathlib.Path(directory, "whole"))
  broken = Breaking(lambda: BREAK[fault](disk), FAULT_STEP)
  before, error = run(disk / "backup", [broken])
  MEND[fault](disk)
  after, other_error = run(disk / "backup")
  report = {"whole": whole, "before": before, "after": after, "error": error}
  print(json.dumps({**report, "other_error": other_error}))


if __name__ == "__main__":
  main(*sys.argv[1:])
