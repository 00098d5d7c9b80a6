"""Processes forked from one that has imported TensorFlow, and not used it.

  done = forking.run("-c", "print(1)")
  done.returncode, done.stdout, done.stderr
  process = forking.CONTEXT.Process(target=function)

Importing it would take three or four seconds of each. A test of what an import
does, or of how an interpreter ends, needs one that is new.
"""

import multiprocessing
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile

CONTEXT = multiprocessing.get_context("forkserver")
# One list for everybody: a process of tests has one such server. Not with
# `tfecho.training`, whose import registers names.
CONTEXT.set_forkserver_preload(
  ["tensorflow", "keras", "sklearn.datasets", "tfecho.native"]
)


def run(*arguments, **options):
  """Runs `python *arguments` until it ends, with the options of `start`.

  Returns:
    A `subprocess.CompletedProcess`, with what was written, as text.
  """
  with tempfile.TemporaryDirectory() as folder:
    out, err = pathlib.Path(folder, "out"), pathlib.Path(folder, "err")
    process = start(*arguments, out=out, err=err, **options)
    process.join()
    return subprocess.CompletedProcess(
      arguments, process.exitcode, out.read_text(), err.read_text()
    )


def start(*arguments, out, err, cwd=None):
  """Starts `python *arguments`, which write to the files `out` and `err`.

  The first argument is `-m` or `-c`.
  """
  process = CONTEXT.Process(
    target=_main,
    args=(arguments, out, err, cwd or os.getcwd(), dict(os.environ)),
  )
  process.start()
  return process


def _main(arguments, out, err, cwd, environment):
  for stream, path in (sys.stdout, out), (sys.stderr, err):
    with open(path, "a") as file:
      os.dup2(file.fileno(), stream.fileno())
  os.environ.clear()
  os.environ.update(environment)
  os.chdir(cwd)
  sys.path.insert(0, str(cwd))
  how, what, *rest = arguments
  sys.argv = [what if how == "-m" else how, *rest]
  if how == "-m":
    runpy.run_module(what, run_name="__main__", alter_sys=True)
  else:
    exec(what, {"__name__": "__main__"})
