"""`python -m tfecho.native` builds, shows and removes."""

import os
import re

import pytest

import tfecho.native.__main__ as command
from tfecho.native import building, target


@pytest.fixture
def run(monkeypatch, capsys):
  """Runs a command: exit status, what it prints, what it complains about."""

  def run_command(*arguments):
    monkeypatch.setattr("sys.argv", ["tfecho.native", *arguments])
    status = command.main()
    printed = capsys.readouterr()
    return status, printed.out, printed.err

  return run_command


@pytest.fixture
def fake_library(fake_compiler):
  """The path of a verified file in the cache."""
  file = building.find_or_build()
  os.close(file.descriptor)
  return file.path


def test_build_prints_the_path_and_the_seconds(
  run, real_compiler, sources, cache_dir
):
  status, out, _ = run("build")
  (path,) = cache_dir.glob("*.so")
  assert status == 0
  assert re.fullmatch(rf"{re.escape(str(path))} \(\d+\.\d s\)\n", out)


def test_build_fails_with_the_compilers_words(run, failing_compiler):
  status, out, err = run("build")
  assert (status, out) == (1, "")
  assert "no such type" in err


def test_status_shows_a_verified_library(run, fake_library, cache_dir):
  status, out, _ = run("status")
  assert status == 0
  for text in (
    str(fake_library),
    str(cache_dir),
    f"{fake_library.stat().st_size} bytes, verified",
    target.current().tensorflow,
    "fake compiler 1.0",
  ):
    assert text in out


def test_status_says_why_there_is_none(run, fake_library):
  fake_library.write_bytes(b"")
  status, out, _ = run("status")
  assert status == 1
  assert "is damaged: 0 bytes" in out


def test_status_builds_nothing_and_needs_no_compiler(
  run, sources, no_compiler, cache_dir
):
  status, out, _ = run("status")
  assert status == 1
  assert "no C++ compiler" in out
  assert not cache_dir.exists()


def test_clean_lists_what_it_removes(run, fake_library, cache_dir):
  status, out, _ = run("clean")
  assert status == 0
  assert f"removed {fake_library}\n" in out
  assert not list(cache_dir.iterdir())
  assert run("clean") == (0, "", "")


def test_clean_says_what_it_cant_remove(run, fake_library, monkeypatch):
  def busy(path):
    raise PermissionError(13, "Permission denied", str(path))

  monkeypatch.setattr("pathlib.Path.unlink", busy)
  status, _, err = run("clean")
  assert status == 1
  assert "Permission denied" in err


@pytest.mark.parametrize("arguments", [(), ("destroy",)])
def test_other_commands_are_refused_with_the_usage(run, capsys, arguments):
  with pytest.raises(SystemExit, match="2"):
    run(*arguments)
  assert "build" in capsys.readouterr().err
