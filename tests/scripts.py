"""Scripts as a person starts them: each in a process of its own, by its flags.

  done = scripts.run("experiments.compare", "--help")
  done.returncode, done.stdout, done.stderr

These processes are forked from one that has imported TensorFlow and has not
used it, or importing it would take most of the time of such a test.
"""

import multiprocessing
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[1]

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tensorflow", "keras", "sklearn.datasets"])


def run(module, *flags):
  """Runs `python -m module *flags` from the checkout, until it ends.

  Returns:
    A `subprocess.CompletedProcess`, with what was written, as text.
  """
  with tempfile.TemporaryDirectory() as folder:
    out, err = pathlib.Path(folder, "out"), pathlib.Path(folder, "err")
    process = _processes.Process(target=_main, args=(module, flags, out, err))
    process.start()
    process.join()
    return subprocess.CompletedProcess(
      [module, *flags], process.exitcode, out.read_text(), err.read_text()
    )


def _main(module, flags, out, err):
  for stream, path in (sys.stdout, out), (sys.stderr, err):
    with path.open("w") as file:
      os.dup2(file.fileno(), stream.fileno())
  os.chdir(ROOT)
  sys.path.insert(0, str(ROOT))
  sys.argv = [module, *flags]
  runpy.run_module(module, run_name="__main__", alter_sys=True)
