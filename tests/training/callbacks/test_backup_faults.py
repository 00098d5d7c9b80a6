"""Backups on a disk that is full, or can't be written to any more."""

import json
import os
import shutil
import subprocess
import sys

import backup_on_faulty_disk as faulty
import pytest
from backends import needs_tensorflow

pytestmark = needs_tensorflow  # Others are refused: test_other_backend.py.

# Who may not mount may do so in a namespace where nobody else sees it.
OWN_DISKS = ("unshare", "--map-root-user", "--mount")


@pytest.fixture
def own_disks():
  """What starts a process that may mount disks for itself."""
  command = [*OWN_DISKS, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
  if not shutil.which("unshare") or subprocess.run(
    command, capture_output=True
  ).returncode:
    pytest.skip("this machine lets nobody mount a disk")
  return OWN_DISKS


@pytest.mark.parametrize("fault", faulty.BREAK)
def test_a_backup_that_can_not_be_written_is_an_error_and_harms_no_other(
  native_ops, own_disks, tmp_path, fault
):
  process = subprocess.run(
    [*own_disks, sys.executable, faulty.__file__, str(tmp_path), fault],
    env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    capture_output=True,
    text=True,
  )
  assert process.returncode == 0, process.stderr
  report = json.loads(process.stdout.splitlines()[-1])
  before, after, whole = (report[k] for k in ("before", "after", "whole"))

  said = {"full": "No space left", "read-only": "Read-only file system"}
  assert said[fault] in report["error"]
  assert report["other_error"] is None
  done = 13  # an epoch of 10 steps, and a backup 3 steps later
  assert before[:done] + after == whole
  assert len(before) == 16  # where the next one failed
