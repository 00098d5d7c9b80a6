"""Builds, shows and removes the native library.

$ python -m tfecho.native build    # build it now, if it is not there
$ python -m tfecho.native status   # what is there; exit status 1: not usable
$ python -m tfecho.native clean    # remove every library from the cache
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from tfecho.native import cache, compiler, loading, target
from tfecho.native.errors import NativeUnavailableError


def build() -> int:
  """Builds the library unless it is there; prints where, and how long."""
  start = time.monotonic()
  path = loading.load().path
  print(f"{path} ({time.monotonic() - start:.1f} s)")
  return 0


def status() -> int:
  """Prints which library there is, and whether it can be used."""
  print(f"TensorFlow:  {target.current().tensorflow}")
  print(f"cache:       {cache.folder()}")
  print(f"compiler:    {_compiler()}")
  try:
    found = cache.find()
  except NativeUnavailableError as error:
    print(f"library:     none to be used: {error}")
    return 1
  os.close(found.descriptor)
  print(f"library:     {found.path}")
  print(f"size:        {found.manifest.size} bytes, verified")
  print(f"built by:    {found.manifest.compiler}")
  return 0


def clean() -> int:
  """Removes every library from the cache, whichever TensorFlow it is for."""
  for path in cache.clean():
    print(f"removed {path}")
  return 0


def main() -> int:
  """Runs the command that is named on the command line."""
  parser = argparse.ArgumentParser(
    prog="python -m tfecho.native",
    description="Builds, shows and removes the native library.",
  )
  commands = parser.add_subparsers(dest="command", required=True)
  actions = {"build": build, "status": status, "clean": clean}
  for name, action in actions.items():
    summary = str(action.__doc__)
    commands.add_parser(name, help=summary, description=summary)
  try:
    return actions[parser.parse_args().command]()
  except (NativeUnavailableError, OSError) as error:
    print(error, file=sys.stderr)
    return 1


def _compiler() -> str:
  try:
    command = compiler.find()
  except NativeUnavailableError as error:
    return str(error)
  return f"{command[0]}, {compiler.version(command)}"


if __name__ == "__main__":
  sys.exit(main())
