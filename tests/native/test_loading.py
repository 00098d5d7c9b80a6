"""The library is loaded once, whole, and only on demand."""

import dataclasses
import os
import shutil
import threading

import pytest

from tfecho import native
from tfecho.native import building, loading, manifest, target

REPORT = """
try: print(native.load().c.tfecho_answer())
except native.NativeUnavailableError as error: print(error)
"""


@pytest.fixture
def library(real_compiler, sources):
  """The path of a real library in the cache, from the small sources."""
  file = building.find_or_build()
  os.close(file.descriptor)
  return file.path


@pytest.fixture
def prebuilt(library, public_path, cache_dir, monkeypatch):
  """The path of a library and manifest elsewhere, named `TFECHO_LIBRARY`."""
  path = public_path / "elsewhere" / "my ops.so"
  path.parent.mkdir(mode=0o755)
  library.rename(path)
  manifest.path_for(library).rename(manifest.path_for(path))
  shutil.rmtree(cache_dir)
  monkeypatch.setenv("TFECHO_LIBRARY", str(path))
  return path


def warnings_of(caplog):
  """What tfecho has logged; threads of others may log, too."""
  return [
    record.getMessage()
    for record in caplog.records
    if record.name.startswith("tfecho")
  ]


def test_the_real_library_has_ops_and_says_where_it_is(native_ops):
  assert [name for name in dir(native_ops.ops) if "dataset" in name]
  assert native_ops.path.exists()


def test_load_returns_the_same_library_every_time(library):
  first = native.load()
  assert first.path == library
  assert first.c.tfecho_answer() == 42
  assert native.load() is first


def test_a_cache_may_have_any_name(
  real_compiler, sources, public_path, monkeypatch
):
  name = os.fsdecode(b"-a b;$(touch broken)&'\"*?`~#|<>\\%s@\n\xff")
  monkeypatch.chdir(public_path)
  monkeypatch.setenv("TFECHO_CACHE_DIR", str(public_path / name))
  assert native.load().c.tfecho_answer() == 42
  assert native.load().path.parent == public_path / name
  assert not (public_path / "broken").exists()


@pytest.mark.parametrize("variable", ["TFECHO_LIBRARY", "TFECHO_CACHE_DIR"])
@pytest.mark.parametrize(
  "value", ["/dev/zero", "/proc/self/mem", "/proc/self/fd", "/tmp", "~nobody9"]
)
def test_variables_that_name_no_place_of_ours_are_refused(
  fake_compiler, monkeypatch, variable, value
):
  monkeypatch.setenv(variable, value)
  with pytest.raises(native.NativeUnavailableError):
    native.load()
  assert fake_compiler.links() == 0


def test_load_builds_if_there_is_nothing(real_compiler, sources):
  assert native.load().c.tfecho_answer() == 42


def test_threads_that_load_at_once_build_once(fake_compiler, caplog):
  def load():
    with pytest.raises(native.NativeUnavailableError):  # It is no library.
      native.load()

  threads = [threading.Thread(target=load) for _ in range(4)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  assert fake_compiler.links() == 1


def test_available_loads_what_is_there_but_builds_nothing(
  fake_compiler, cache_dir
):
  assert not native.available()
  assert fake_compiler.calls() == []
  assert not cache_dir.exists()


def test_available_is_true_once_it_is_built(library):
  assert native.available()
  assert loading._loaded.path == library


def test_available_is_false_for_a_library_that_does_not_load(fake_compiler):
  with pytest.raises(native.NativeUnavailableError):
    native.load()
  assert not native.available()


def test_importing_compiles_nothing_and_touches_no_cache(
  run_python, fake_compiler, cache_dir
):
  code = "import tfecho, tfecho.native; print(tfecho.native.available())"
  assert run_python(code) == "False"
  assert fake_compiler.calls() == []
  assert not cache_dir.exists()


def test_a_library_cut_in_half_does_not_kill_the_process(
  library, no_compiler, start
):
  os.truncate(library, library.stat().st_size // 2)
  out = start(REPORT + "print(native.available())").finish()
  assert f"{library} is damaged" in out
  assert out.endswith("False")


def test_a_library_cut_in_half_is_built_again(library, start):
  os.truncate(library, library.stat().st_size // 2)
  assert start(REPORT).finish() == "42"


def test_what_root_built_serves_a_user_without_a_compiler(
  library, start, nobody
):
  assert start(REPORT, user=nobody, PATH="", CXX="").finish() == "42"


def test_what_another_user_built_is_refused(library, start, nobody):
  for path in (library.parent, *library.parent.iterdir()):
    os.chown(path, nobody, nobody)
  assert "refused" in start(REPORT).finish()
  assert start(REPORT, user=nobody).finish() == "42"


def test_what_was_verified_is_loaded_even_if_the_path_changes(library):
  file = building.find_or_build()
  library.unlink()
  library.write_text("something else")
  assert loading._open(file).c.tfecho_answer() == 42


def test_a_file_that_is_no_library_is_an_error_that_names_it(fake_compiler):
  with pytest.raises(native.NativeUnavailableError, match=r"so can't be load"):
    native.load()


def test_a_symbol_that_is_missing_is_an_error_that_names_it(
  real_compiler, sources
):
  (sources / "answer.cc").write_text(
    "int nowhere_defined(); int answer = nowhere_defined();\n"
  )
  with pytest.raises(native.NativeUnavailableError, match="nowhere_defined"):
    native.load()


def test_a_full_disk_is_an_error_of_its_own_class(fake_compiler, monkeypatch):
  def full_disk(*names):
    raise OSError(28, "No space left on device")

  monkeypatch.setattr(os, "replace", full_disk)
  with pytest.raises(native.NativeUnavailableError, match="No space left"):
    native.load()


def test_another_system_is_told_so(monkeypatch, fake_compiler):
  monkeypatch.setattr("sys.platform", "darwin")
  with pytest.raises(native.NativeUnavailableError, match="are for Linux"):
    native.load()
  assert not native.available()
  assert fake_compiler.calls() == []


def test_the_prebuilt_library_is_loaded(prebuilt, no_compiler, cache_dir):
  library = native.load()
  assert library.path == prebuilt
  assert library.c.tfecho_answer() == 42
  assert not cache_dir.exists()


def test_a_prebuilt_library_for_another_tensorflow_is_refused(
  prebuilt, monkeypatch
):
  here = target.current()
  other = dataclasses.replace(here, tensorflow="2.99.0")
  monkeypatch.setattr("tfecho.native.cache.current", lambda: other)
  with pytest.raises(native.NativeUnavailableError) as caught:
    native.load()
  assert "TFECHO_LIBRARY" in str(caught.value)
  assert f"TensorFlow: {here.tensorflow}, here 2.99.0" in str(caught.value)


@pytest.mark.parametrize(
  "spoil",
  [
    lambda path: path.unlink(),
    lambda path: manifest.path_for(path).unlink(),
    lambda path: path.write_bytes(path.read_bytes()[:-1]),
    lambda path: path.chmod(0o666),
    lambda path: path.parent.chmod(0o777),
  ],
  ids=["gone", "no manifest", "cut", "open file", "open folder"],
)
def test_a_prebuilt_library_is_never_replaced_by_a_build(
  prebuilt, spoil, cache_dir
):
  spoil(prebuilt)
  with pytest.raises(native.NativeUnavailableError, match="elsewhere"):
    native.load()
  assert not native.available()
  assert not cache_dir.exists()


def test_automatic_loading_warns_once_and_says_what_to_do(
  no_compiler, sources, caplog
):
  assert native.try_load() is None
  assert native.try_load() is None
  (message,) = warnings_of(caplog)
  assert "no C++ compiler" in message
  assert "python -m tfecho.native build" in message


def test_automatic_loading_tries_once(failing_compiler, caplog):
  assert native.try_load() is None
  assert native.try_load() is None
  assert len(failing_compiler.calls()) == 1
  assert sum("no such type" in text for text in warnings_of(caplog)) == 1


def test_automatic_loading_returns_what_was_loaded_since(
  no_compiler, sources, monkeypatch
):
  assert native.try_load() is None
  loaded = loading.Library(ops=None, c=None, path=None)
  monkeypatch.setattr(loading, "_loaded", loaded)
  assert native.try_load() is loaded


def test_automatic_loading_returns_the_library(library, caplog):
  caplog.clear()
  assert native.try_load() is native.load()
  assert warnings_of(caplog) == []
