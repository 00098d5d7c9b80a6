"""Finds a C++ compiler and makes one shared library from a folder of sources.

    command = compiler.find()
    compiler.build(command, sources, output, compile_flags, link_flags)

Nothing goes through a shell: paths may hold blanks and any other character.
Nothing is looked for where the process happens to be, either, which may be a
folder of somebody else's: neither programs, which an empty entry of `PATH`
means, nor headers and libraries, for which there are such variables, too.
"""

from __future__ import annotations

import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent import futures

from tfecho.native import target
from tfecho.native.errors import CompilationError, NativeUnavailableError

CANDIDATES = ("c++", "g++", "clang++")
# TensorFlow's headers take about 1 GB of memory for each file compiled.
PARALLEL = 2
SHOWN_CHARACTERS = 6_000


def find() -> list[str]:
  """Returns the command of the compiler: `CXX`, else the first there is.

  `CXX` is one program, or a program and its first arguments as in
  `CXX="ccache g++"`; paths among these have to be absolute.

  Raises:
    NativeUnavailableError: if there is none, or `CXX` names none.
  """
  wanted = os.environ.get("CXX", "").strip()
  if wanted:
    return _from_variable(wanted)
  for name in CANDIDATES:
    path = _which(name)
    if path:
      return [path]
  raise NativeUnavailableError(
    f"no C++ compiler: none of {', '.join(CANDIDATES)} is on the PATH, and CXX"
    " is not set (Debian and Ubuntu: `apt-get install g++`)"
  )


def _which(name: str) -> str | None:
  folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
  absolute = filter(os.path.isabs, folders)
  path = shutil.which(name, path=os.pathsep.join(absolute))
  # A `name` with a slash is a path, and starts where the process does.
  return os.path.abspath(path) if path else None


def _from_variable(wanted: str) -> list[str]:
  whole = _which(wanted)  # A path with blanks, taken as it is.
  if whole:
    return [whole]
  try:
    command = shlex.split(wanted)
  except ValueError as error:
    raise NativeUnavailableError(f"CXX={wanted!r}: {error}") from error
  path = _which(command[0]) if command else None
  if path is None:
    raise NativeUnavailableError(f"CXX={wanted!r} names no program")
  return [path, *command[1:]]


def version(command: Sequence[str]) -> str:
  """Returns the first line with which the compiler names itself."""
  result = _run([*command, "--version"], folder="/")
  lines = result.stdout.splitlines()
  return lines[0] if result.returncode == 0 and lines else "unknown"


def build(
  command: Sequence[str],
  sources: pathlib.Path,
  output: pathlib.Path,
  compile_flags: Sequence[str],
  link_flags: Sequence[str],
) -> None:
  """Compiles every `.cc` file in `sources`, links all into `output`.

  Args:
    command: the compiler, with its first arguments.
    sources: the folder.
    output: the library to write. Its folder exists, and holds what is made on
      the way; nobody else should be able to write there.
    compile_flags: arguments for each compilation.
    link_flags: arguments for the link, after the objects.

  Raises:
    CompilationError: with the compiler's words, if it fails.
  """
  files = target.source_files(sources)
  if not files:
    raise CompilationError(f"no C++ sources in {sources}")
  with tempfile.TemporaryDirectory(dir=output.parent) as folder:
    objects = [str(pathlib.Path(folder, f"{file.name}.o")) for file in files]
    commands = [
      [*command, *compile_flags, "-c", str(file), "-o", made]
      for file, made in zip(files, objects)
    ]
    _run_all(commands, folder)
    link = [*command, "-shared", *objects, *link_flags, "-o", str(output)]
    _check(link, folder)


def _run_all(commands: Sequence[Sequence[str]], folder: str) -> None:
  with futures.ThreadPoolExecutor(PARALLEL) as pool:
    running = [pool.submit(_check, command, folder) for command in commands]
    try:
      for result in futures.as_completed(running):
        result.result()
    finally:
      for waiting in running:
        waiting.cancel()


def _check(command: Sequence[str], folder: str) -> None:
  result = _run(command, folder)
  if result.returncode != 0:
    raise CompilationError(
      f"the C++ compiler {command[0]} failed (exit status"
      f" {result.returncode})",
      (result.stderr + result.stdout).strip()[:SHOWN_CHARACTERS],
    )


def _run(
  command: Sequence[str], folder: str
) -> subprocess.CompletedProcess[str]:
  """Runs a compiler in `folder`, where it also has its temporary files."""
  try:
    return subprocess.run(
      command,
      cwd=folder,
      env={**os.environ, "TMPDIR": folder},
      stdin=subprocess.DEVNULL,
      capture_output=True,
      text=True,
      errors="replace",
      check=False,
    )
  except OSError as error:
    raise CompilationError(
      f"the C++ compiler {command[0]} can't be started: {error}", ""
    ) from error
