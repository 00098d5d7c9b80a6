"""Where libraries are kept, and what writing and removing them leaves."""

import dataclasses
import os
import pathlib
import stat

import pytest

from tfecho.native import NativeUnavailableError, building, cache, target
from tfecho.native.manifest import Manifest, path_for


@pytest.fixture
def any_umask():
  """Restores the umask that a test changes."""
  before = os.umask(0)
  os.umask(before)
  yield
  os.umask(before)


def publish(content=b"library", here=None):
  here = here or target.current()
  path = cache.library_path(here)
  with cache.turn(path):
    cache.publish(path, content, Manifest.describe(content, "c++", here))
  return path


@pytest.mark.parametrize(
  # variables, folder
  "environment, folder",
  [
    ({"TFECHO_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/b"}, "/a"),
    ({"TFECHO_CACHE_DIR": "", "XDG_CACHE_HOME": "/b"}, "/b/tfecho"),
    ({"XDG_CACHE_HOME": "/b"}, "/b/tfecho"),
    ({"XDG_CACHE_HOME": "relative"}, "/home/me/.cache/tfecho"),
    ({"XDG_CACHE_HOME": ""}, "/home/me/.cache/tfecho"),
    ({}, "/home/me/.cache/tfecho"),
    ({"TFECHO_CACHE_DIR": "~/x"}, "/home/me/x"),
  ],
)
def test_the_folder_is_the_one_that_the_environment_names(
  monkeypatch, environment, folder
):
  monkeypatch.delenv("TFECHO_CACHE_DIR")
  monkeypatch.setenv("HOME", "/home/me")
  for name, value in environment.items():
    monkeypatch.setenv(name, value)
  assert cache.folder() == pathlib.Path(folder)


def test_a_relative_folder_starts_where_the_process_does(
  monkeypatch, tmp_path
):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setenv("TFECHO_CACHE_DIR", "x")
  assert cache.folder() == tmp_path / "x"


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch):
  monkeypatch.setenv("TFECHO_CACHE_DIR", "~no-such-user/x")
  with pytest.raises(NativeUnavailableError, match="Set TFECHO_CACHE_DIR"):
    cache.folder()


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o077], ids=oct)
def test_whatever_the_umask_only_the_owner_can_write(
  cache_dir, any_umask, umask
):
  os.umask(umask)
  publish()
  os.umask(0o022)
  assert len(list(cache_dir.iterdir())) == 3
  for path in [cache_dir, *cache_dir.iterdir()]:
    assert not path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)
  os.close(cache.find().descriptor)


def test_others_can_read_what_was_built(cache_dir, any_umask):
  os.umask(0o022)
  path = publish()
  assert stat.S_IMODE(cache_dir.stat().st_mode) == 0o755
  assert stat.S_IMODE(path.stat().st_mode) == 0o644
  assert stat.S_IMODE(path_for(path).stat().st_mode) == 0o644


def test_others_cant_hold_the_lock(cache_dir):
  lock = publish().with_suffix(".so.lock")
  assert stat.S_IMODE(lock.stat().st_mode) == 0o600


@pytest.mark.parametrize("fails", [1, 2])
def test_a_failure_in_writing_leaves_what_was_there(monkeypatch, fails):
  path = publish(b"first")
  calls = []
  replace = os.replace

  def full_disk(*names):
    calls.append(names)
    if len(calls) == fails:
      raise OSError(28, "No space left on device")
    replace(*names)

  monkeypatch.setattr(os, "replace", full_disk)
  with pytest.raises(OSError, match="No space left"):
    publish(b"again")
  assert not list(path.parent.glob("*.tmp"))
  assert path.read_bytes() == (b"first" if fails == 1 else b"again")


def test_libraries_for_two_versions_of_tensorflow_share_a_folder(cache_dir):
  here = target.current()
  other = dataclasses.replace(here, tensorflow="2.99.0")
  publish(b"here", here)
  publish(b"other", other)
  found = cache.find()
  os.close(found.descriptor)
  assert found.path.read_bytes() == b"here"
  assert "2.99.0" in cache.library_path(other).name
  assert len(list(cache_dir.glob("*.so"))) == 2


@pytest.mark.skipif(
  "TFECHO_TEST_OTHER_PYTHON" not in os.environ,
  reason="TFECHO_TEST_OTHER_PYTHON names no Python with another TensorFlow",
)
def test_two_versions_of_tensorflow_build_and_find_their_own(
  cache_dir, fake_compiler, run_python
):
  other = os.environ["TFECHO_TEST_OTHER_PYTHON"]
  code = """
import os, pathlib
from tfecho.native import building, target
target.SOURCES = pathlib.Path(os.environ["TEST_SOURCES"])
print(building.find_or_build().path)
"""
  for _ in range(2):
    theirs = run_python(code, executable=other)
    found = building.find_or_build()
    os.close(found.descriptor)
    assert theirs != str(found.path)
  assert len(list(cache_dir.glob("*.so"))) == 2
  assert fake_compiler.links() == 2


def test_cleaning_removes_our_files_and_no_others(cache_dir):
  path = publish()
  (cache_dir / f"{path.name}.abc123.tmp").write_text("left by a killed one")
  (cache_dir / f"{path.name}.json.abc_12.tmp").write_text("the same")
  (cache_dir / f"{path.name}.def_34.tmp").mkdir()
  (cache_dir / f"{path.name}.def_34.tmp" / "library.so").write_text("half")
  others = [
    cache_dir / name
    for name in ("notes.txt", "libother.so", "libtfecho-.txt", "x.so.lock")
  ]
  for other in others:
    other.write_text("mine")
  (cache_dir / "folder").mkdir()
  removed = cache.clean()
  assert len(removed) == 6
  assert {*cache_dir.iterdir()} == {*others, cache_dir / "folder"}


def test_there_is_nothing_to_clean_where_nothing_was_built():
  assert cache.clean() == []


def test_a_folder_that_cant_be_made_says_which_variable_to_set(
  monkeypatch, fake_compiler
):
  monkeypatch.setenv("TFECHO_CACHE_DIR", "/proc/no/cache")
  with pytest.raises(NativeUnavailableError, match="set TFECHO_CACHE_DIR"):
    building.find_or_build()
  assert fake_compiler.calls() == []


def test_a_folder_that_is_a_file_is_an_error(cache_dir, fake_compiler):
  cache_dir.write_text("")
  with pytest.raises(NativeUnavailableError, match="Not a directory"):
    building.find_or_build()
  assert fake_compiler.calls() == []


def test_a_folder_that_others_may_write_is_not_written_to(
  cache_dir, fake_compiler
):
  cache_dir.mkdir()
  cache_dir.chmod(0o777)
  with pytest.raises(NativeUnavailableError, match="refused"):
    building.find_or_build()
  assert fake_compiler.calls() == []
  assert list(cache_dir.iterdir()) == []


def test_a_read_only_folder_is_read_but_not_written(
  cache_dir, fake_compiler, start, nobody
):
  cache_dir.mkdir()
  code = """
try: print(building.find_or_build().path.name)
except native.NativeUnavailableError as error: print(error)
"""
  refusal = start(code, user=nobody).finish()
  assert f"{cache_dir} can't be written (Permission den" in refusal
  assert fake_compiler.links() == 0
  found = building.find_or_build()
  os.close(found.descriptor)
  assert start(code, user=nobody).finish() == found.path.name
  assert fake_compiler.links() == 1
