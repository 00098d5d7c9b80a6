"""What the tests of the native library's life share.

Most of them need no C++ compiler: `fake_compiler` writes files that are no
libraries, which is all that building, caching and verifying look at. Every
test has an empty cache, and a process that has loaded nothing.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import forking
import pytest

import tfecho
from tfecho.native import building, compiler, loading, target

NOBODY = 65534

# Its last argument is the file to write, for a compilation and for a link.
FAKE = """#!/bin/sh
if [ "$1" = --version ]; then echo "fake compiler 1.0"; exit; fi
echo "$@" >> "$0.calls"
{body}
for output; do :; done
echo "not a real library" > "$output"
"""

# What the code of other processes has at hand.
PRELUDE = """
import os
import pathlib

from tfecho import native
from tfecho.native import building, cache, compiler, loading, target

target.SOURCES = pathlib.Path(os.environ["TEST_SOURCES"])
"""

# Gives a process that was forked its own streams and variables. Everything
# that it needs is imported by then, so it may become somebody who could not
# even read the interpreter, where that lies in the home of root.
BEGIN = """
import os
import signal
import tempfile

signal.alarm(120)  # A process that waits for ever fails its test instead.
os.dup2(out.fileno(), 1)
os.dup2(err.fileno(), 2)
os.environ.clear()
os.environ.update(environment)
tempfile.tempdir = None  # As in a new process: `TMPDIR` decides.
if user is not None:
  os.setgroups([])
  os.setgid(user)
  os.setuid(user)
"""

class FakeCompiler:
  """A program that takes the arguments of a compiler, and notes its calls."""

  def __init__(self, path, body=""):
    self.path = path
    self.rewrite(body)

  def rewrite(self, body):
    """Makes it run these shell commands at every call."""
    self.path.write_text(FAKE.format(body=body))
    self.path.chmod(0o755)

  def calls(self):
    """Returns one line for each call."""
    noted = pathlib.Path(f"{self.path}.calls")
    return noted.read_text().splitlines() if noted.exists() else []

  def links(self):
    """Returns how many libraries were made."""
    return sum("-shared" in call for call in self.calls())


class Process:
  """A process of its own that runs `code` in this environment.

  Attributes:
    out: what it prints, as it comes.
    err: its log, and what else it says on the standard error stream.
  """

  def __init__(self, code, environment, user=None):
    self.out, out = text_pipe()
    self.err, err = text_pipe()
    variables = {
      "out": out, "err": err, "environment": environment, "user": user,
    }
    whole = BEGIN + PRELUDE + code
    self._process = forking.CONTEXT.Process(
      target=exec, args=(whole, variables)
    )
    self._process.start()
    out.close()
    err.close()

  def kill(self):
    """Ends it as the system does when memory runs out."""
    self._process.kill()
    self._process.join()
    self.out.close()
    self.err.close()

  def finish(self):
    """Waits for its end; returns what it printed since it was last read."""
    with self.out, self.err:
      out, err = self.out.read(), self.err.read()
    self._process.join()
    assert self._process.exitcode == 0, err
    return out.strip()

  def wait_for(self, words):
    """Reads its log until it says these words."""
    lines = []
    for line in self.err:
      lines.append(line)
      if words in line:
        return
    raise AssertionError(f"{words!r} is missing in:\n{''.join(lines)}")


def text_pipe():
  """Returns a text file to read from, and what a process writes it with."""
  reading, writing = forking.CONTEXT.Pipe(duplex=False)
  with reading:
    return open(os.dup(reading.fileno()), encoding="utf-8"), writing


@pytest.fixture
def public_path():
  """A folder like `tmp_path`, into which every user can look."""
  with tempfile.TemporaryDirectory() as folder:
    os.chmod(folder, 0o755)
    yield pathlib.Path(folder)


@pytest.fixture(autouse=True)
def cache_dir(public_path, monkeypatch):
  """The cache of this test: not there yet, known to all its processes."""
  for name in ("TFECHO_LIBRARY", "XDG_CACHE_HOME"):
    monkeypatch.delenv(name, raising=False)
  path = public_path / "cache"
  monkeypatch.setenv("TFECHO_CACHE_DIR", str(path))
  return path


@pytest.fixture(autouse=True)
def nothing_loaded(monkeypatch):
  """Lets the test begin like a new process, and puts things back after it."""
  monkeypatch.setattr(loading, "_loaded", None)
  monkeypatch.setattr(loading, "_given_up", False)
  monkeypatch.setattr(building, "_failures", {})


@pytest.fixture
def sources(public_path, monkeypatch):
  """C++ sources that compile in no time: they include nothing."""
  folder = public_path / "sources"
  folder.mkdir()
  (folder / "answer.cc").write_text(
    'extern "C" int tfecho_answer() { return 42; }\n'
  )
  monkeypatch.setattr(target, "SOURCES", folder)
  return folder


@pytest.fixture
def start(sources, public_path):
  """Starts a process: `start(code, user=None, **variables)`."""

  def start_process(code, user=None, **variables):
    # A process that is killed leaves its temporary files where they are.
    own = {"TEST_SOURCES": str(sources), "TMPDIR": str(public_path)}
    return Process(code, {**os.environ, **own, **variables}, user)

  return start_process


@pytest.fixture
def run_python(sources):
  """Runs a new interpreter: `run_python(code, executable=...)`, its output.

  Slower than `start` by an import of TensorFlow: for tests of just that.
  """

  def run(code, executable=sys.executable):
    installed = pathlib.Path(tfecho.__file__).parents[1]
    variables = {"PYTHONPATH": str(installed), "TEST_SOURCES": str(sources)}
    return subprocess.run(
      [executable, "-c", code],
      env={**os.environ, **variables},
      stdout=subprocess.PIPE,
      text=True,
      check=True,
    ).stdout.strip()

  return run


@pytest.fixture
def fake_compiler(public_path, monkeypatch, sources):
  """A compiler that always succeeds, named by `CXX`."""
  fake = FakeCompiler(public_path / "fake")
  monkeypatch.setenv("CXX", str(fake.path))
  return fake


@pytest.fixture
def failing_compiler(public_path, monkeypatch, sources):
  """A compiler that always fails, named by `CXX`."""
  words = "echo 'no such type' >&2"
  fake = FakeCompiler(public_path / "failing", f"{words}; exit 3")
  monkeypatch.setenv("CXX", str(fake.path))
  return fake


@pytest.fixture
def lose_compiler(monkeypatch):
  """Makes this a machine without a compiler, when it is called."""

  def lose():
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "")

  return lose


@pytest.fixture
def no_compiler(lose_compiler):
  """A machine without a compiler, from the start."""
  lose_compiler()


@pytest.fixture
def real_compiler():
  """The command of the machine's compiler; skips the test without one."""
  try:
    return compiler.find()
  except tfecho.native.NativeUnavailableError as error:
    pytest.skip(str(error))


@pytest.fixture
def nobody():
  """The number of a user without rights; skips the test unless run by root."""
  if os.geteuid() != 0:
    pytest.skip("only root can give files away and become somebody else")
  return NOBODY
