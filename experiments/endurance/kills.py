"""Kills a training at random moments, and looks at what it came to.

Killed and started again as often as may be, a training sees in every step what
one without interruption sees in it, and ends with the same weights.
"""

import multiprocessing
import os
import pathlib
import random
import signal
import time

from experiments.endurance import victim

# With TensorFlow loaded once: each start is a fork of that process.
_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload([victim.__name__])


def run(folder, *, kills, seed, on_kill=lambda line: None):
  """Kills trainings until it has done so often enough.

  Args:
    folder: Path of a folder for backups and logs.
    kills: How many. A training that ends before is followed by another one.
    seed: Of the moments.
    on_kill: Called with a line of text after each.

  Returns:
    A dict: `kills`, `trainings` that ended, and `steps_repeated` in all.

  Raises:
    AssertionError: If a training did not go on, saw another batch than it was
      to see, or ended with other weights.
  """
  folder = pathlib.Path(folder)
  expected, seconds = _without_kills(folder)
  draw = random.Random(seed)
  done = trainings = repeated = 0
  while done < kills:
    log, backups = folder / f"log-{trainings}", folder / f"backup-{trainings}"
    ended = False
    while not ended:
      patience = draw.uniform(0, seconds) if done < kills else None
      ended = _train(backups, log, patience)
      if not ended:
        done += 1
        on_kill(f"killed {done} times, after {_steps(log)} steps")
    repeated += _check(log, expected)
    trainings += 1
  return {"kills": done, "trainings": trainings, "steps_repeated": repeated}


def _without_kills(folder):
  """Returns the lines of a training, and how long it took."""
  log = folder / "log-whole"
  start = time.monotonic()
  assert _train(folder / "backup-whole", log, None)
  return log.read_text().splitlines(), time.monotonic() - start


def _train(backups, log, seconds):
  """Trains, but no longer than that; returns whether it came to its end."""
  process = _FORKING.Process(target=victim.train, args=(backups, log))
  process.start()
  process.join(seconds)
  if process.exitcode is None:
    os.kill(process.pid, signal.SIGKILL)
    process.join()
  assert process.exitcode in (0, -signal.SIGKILL), "the training failed"
  return process.exitcode == 0


def _steps(log):
  return len(log.read_text().splitlines()) if log.exists() else 0


def _check(log, expected):
  """Compares a log with the right one; returns how many lines repeat others."""
  lines = log.read_text().splitlines()
  assert set(lines) == set(expected), "a step saw another batch"
  assert lines[-1] == expected[-1], "other weights"
  return len(lines) - len(expected)
