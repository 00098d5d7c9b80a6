"""Scripts as a person starts them: each in a process of its own, by its flags.

  done = scripts.run("experiments.compare", "--help")
  done.returncode, done.stdout, done.stderr
"""

import pathlib

import forking

ROOT = pathlib.Path(__file__).parents[1]


def run(module, *flags):
  """Runs `python -m module *flags` from the checkout, until it ends."""
  return forking.run("-m", module, *flags, cwd=ROOT)


def execute(code):
  """Runs `python -c code` likewise."""
  return forking.run("-c", code, cwd=ROOT)


def start(module, *flags, out, err):
  """Starts it, with what it says in the files `out` and `err`."""
  return forking.start("-m", module, *flags, out=out, err=err, cwd=ROOT)
