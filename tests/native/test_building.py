"""One build serves all processes, and a failure is told once."""

import os
import pathlib

import pytest

from tfecho.native import NativeUnavailableError, building, compiler
from tfecho.native.errors import CompilationError

BUILD = """
try: print(building.find_or_build().path)
except native.NativeUnavailableError as error: print(error)
"""


class Gate:
  """Where the compilers of processes that know `GATE` wait before they link."""

  def __init__(self, path):
    self.path = str(path)
    self._opened = None
    os.mkfifo(path)

  def open(self):
    """Lets those who wait go on, and those who come later."""
    self._opened = os.open(self.path, os.O_RDWR)

  def close(self):
    """Gives the descriptor back."""
    if self._opened is not None:
      os.close(self._opened)


@pytest.fixture
def gate(public_path, fake_compiler):
  """A gate in front of `fake_compiler`."""
  made = Gate(public_path / "gate")
  fake_compiler.rewrite(
    'case "$*" in *-shared*) [ -z "$GATE" ] || : < "$GATE"; $THEN;; esac'
  )
  yield made
  made.close()


def build():
  """Returns the path of the library, found or built."""
  file = building.find_or_build()
  os.close(file.descriptor)
  return file.path


def messages(caplog):
  """What tfecho has logged; threads of others may log, too."""
  return [
    record.getMessage()
    for record in caplog.records
    if record.name.startswith("tfecho")
  ]


def test_what_was_built_is_found_again(fake_compiler, cache_dir):
  path = build()
  assert path.parent == cache_dir
  assert build() == path
  assert fake_compiler.links() == 1


def test_a_build_says_so_in_one_line(fake_compiler, caplog):
  build()
  build()
  (message,) = messages(caplog)
  assert "building the native ops" in message
  assert str(fake_compiler.path) in message
  assert "\n" not in message


def test_nothing_is_left_behind_but_library_manifest_and_lock(
  fake_compiler, cache_dir, public_path, monkeypatch
):
  temporary = public_path / "temporary"
  temporary.mkdir()
  monkeypatch.setattr("tempfile.tempdir", str(temporary))
  path = build()
  assert {file.name for file in cache_dir.iterdir()} == {
    path.name, f"{path.name}.json", f"{path.name}.lock",
  }
  assert not list(temporary.iterdir())


def test_nobody_else_can_write_where_it_is_built(
  fake_compiler, cache_dir, public_path, monkeypatch
):
  everybodys = public_path / "everybody's"
  everybodys.mkdir()
  everybodys.chmod(0o777)
  monkeypatch.setenv("TMPDIR", str(everybodys))
  monkeypatch.setattr("tempfile.tempdir", None)
  fake_compiler.rewrite(
    'stat -c "%a %n" "$PWD" "$TMPDIR" "$(dirname "$PWD")" >> "$0.places"'
  )
  build()
  places = pathlib.Path(f"{fake_compiler.path}.places").read_text()
  modes, paths = zip(*(line.split(" ", 1) for line in places.splitlines()))
  assert set(modes) == {"700"}
  assert all(path.startswith(f"{cache_dir}/libtfecho-") for path in paths)
  assert not list(everybodys.iterdir())


def test_what_somebody_puts_in_place_of_the_build_is_refused(
  fake_compiler, cache_dir
):
  fake_compiler.rewrite(
    """
for output; do :; done
folder=$(dirname "$output")
case "$*" in
  *-shared*) mv "$folder" "$folder.old"; mkdir -m 777 "$folder";;
esac
"""
  )
  with pytest.raises(NativeUnavailableError, match="refused: .*by others"):
    build()
  assert not list(cache_dir.glob("*.so"))


def test_other_sources_make_another_library(fake_compiler, sources):
  first = build()
  (sources / "answer.cc").write_text("int changed;\n")
  assert build() != first
  assert fake_compiler.links() == 2


def test_a_machine_without_a_compiler_takes_what_is_there(
  fake_compiler, lose_compiler
):
  path = build()
  lose_compiler()
  assert build() == path


@pytest.mark.parametrize(
  "damage",
  [
    lambda path: path.write_bytes(path.read_bytes()[:5]),
    lambda path: path.write_bytes(bytes(path.stat().st_size)),
    lambda path: path.with_name(path.name + ".json").write_bytes(b"{"),
    lambda path: path.with_name(path.name + ".json").unlink(),
    lambda path: path.unlink(),
  ],
  ids=["half", "zero-filled", "bad manifest", "no manifest", "no library"],
)
def test_what_is_damaged_is_built_again(fake_compiler, damage):
  path = build()
  whole = path.read_bytes()
  damage(path)
  assert build() == path
  assert path.read_bytes() == whole
  assert fake_compiler.links() == 2


def test_what_must_not_be_trusted_is_not_built_again(fake_compiler):
  path = build()
  path.chmod(0o666)
  with pytest.raises(NativeUnavailableError, match="refused"):
    build()
  assert fake_compiler.links() == 1


def test_without_a_compiler_the_error_says_what_is_missing_and_why(
  no_compiler, sources, cache_dir
):
  with pytest.raises(NativeUnavailableError) as caught:
    build()
  assert "is not there" in str(caught.value)
  assert "no C++ compiler" in str(caught.value)
  assert not cache_dir.exists()


def test_without_a_compiler_a_damaged_library_is_called_damaged(
  fake_compiler, lose_compiler
):
  build().write_bytes(b"")
  lose_compiler()
  with pytest.raises(NativeUnavailableError, match="damaged.*no C[+][+] comp"):
    build()


def test_a_failure_shows_the_compilers_words_once(failing_compiler, cache_dir):
  with pytest.raises(CompilationError, match="no such type"):
    build()
  for _ in range(2):
    with pytest.raises(CompilationError, match="shown before") as caught:
      build()
    assert "no such type" not in str(caught.value)
  assert len(failing_compiler.calls()) == 1
  assert not list(cache_dir.glob("*.so"))


def test_a_failing_compiler_may_have_any_name(
  failing_compiler, monkeypatch, caplog
):
  odd = os.fsencode(failing_compiler.path) + b"\n\xff"
  failing_compiler.path.rename(os.fsdecode(odd))
  monkeypatch.setenv("CXX", os.fsdecode(odd))
  for words in ("no such type", "shown before"):
    with pytest.raises(CompilationError, match=words):
      build()
  assert caplog.text.encode()  # which lone surrogates would not be


def test_after_a_failure_another_compiler_is_tried(
  failing_compiler, fake_compiler, monkeypatch
):
  monkeypatch.setenv("CXX", str(failing_compiler.path))
  with pytest.raises(CompilationError):
    build()
  monkeypatch.setenv("CXX", str(fake_compiler.path))
  build()


def test_after_a_failure_changed_sources_are_tried(failing_compiler, sources):
  for _ in range(2):
    (sources / "answer.cc").write_text((sources / "answer.cc").read_text() * 2)
    with pytest.raises(CompilationError, match="no such type"):
      build()
  assert len(failing_compiler.calls()) == 2


def test_a_compiler_that_writes_nothing_is_an_error(
  fake_compiler
):
  fake_compiler.rewrite("exit 0")
  with pytest.raises(OSError, match="No such file"):
    build()


def test_sources_that_change_while_being_compiled_are_not_published(
  fake_compiler, sources, cache_dir
):
  changing = sources / "answer.cc"
  fake_compiler.rewrite(f"echo >> '{changing}'")
  with pytest.raises(CompilationError, match="changed while"):
    build()
  assert not list(cache_dir.glob("*.so"))


def test_a_file_system_without_locks_is_good_enough(
  fake_compiler, monkeypatch
):
  def unsupported(lock, operation):
    raise OSError(38, "Function not implemented")

  monkeypatch.setattr("fcntl.flock", unsupported)
  assert build().exists()


def test_a_process_forked_during_a_build_does_not_keep_the_turn(
  fake_compiler, start
):
  code = """
path = cache.library_path(target.current())
with cache.turn(path):
  reading, writing = os.pipe()
  child = os.fork()
  if child == 0:
    os.close(writing)
    os.read(reading, 1)
    os._exit(0)
print(building.find_or_build().path)  # Not after the child, which waits for:
os.write(writing, b"x")
os.waitpid(child, 0)
"""
  assert start(code).finish() == str(build())


def test_eight_processes_that_start_at_once_compile_once(
  start, fake_compiler
):
  processes = [start(BUILD) for _ in range(8)]
  paths = {process.finish() for process in processes}
  assert paths == {str(build())}
  assert fake_compiler.links() == 1


def test_processes_that_come_later_wait_for_the_first(
  start, gate, fake_compiler
):
  first = start(BUILD, GATE=gate.path)
  first.wait_for("building the native ops")
  others = [start(BUILD, GATE=gate.path) for _ in range(7)]
  for process in others:
    process.wait_for("waiting for another process")
  gate.open()
  paths = {process.finish() for process in [first, *others]}
  assert paths == {str(build())}
  assert fake_compiler.links() == 1


def test_processes_that_waited_for_a_failure_do_not_repeat_it(
  start, gate, fake_compiler
):
  fake_compiler.rewrite(': < "$GATE"; echo "no such type" >&2; exit 1')
  first = start(BUILD, GATE=gate.path)
  first.wait_for("building the native ops")
  others = [start(BUILD, GATE=gate.path) for _ in range(7)]
  for process in others:
    process.wait_for("waiting for another process")
  gate.open()
  assert "no such type" in first.finish()
  for process in others:
    out = process.finish()
    assert "no such type" not in out
    assert "shown before" in out
  assert len(fake_compiler.calls()) == 1


def test_a_failure_in_another_process_is_not_remembered_for_ever(
  start, failing_compiler
):
  assert "no such type" in start(BUILD).finish()
  with pytest.raises(CompilationError, match="no such type"):
    build()


def test_a_process_that_is_killed_while_building_gives_way(
  start, gate, fake_compiler
):
  first = start(BUILD, GATE=gate.path, THEN="exit")
  first.wait_for("building the native ops")
  second = start(BUILD)
  second.wait_for("waiting for another process")
  first.kill()
  assert second.finish() == str(build())
  gate.open()  # For the compiler of the first, which is an orphan now.


def test_what_a_killed_process_left_does_not_count(fake_compiler, cache_dir):
  path = build()
  path.with_name(path.name + ".json").unlink()
  (cache_dir / f"{path.name}.abc.tmp").write_text("half")
  build()
  assert fake_compiler.links() == 2


def test_a_real_compiler_builds_a_real_library(real_compiler, sources):
  file = building.find_or_build()
  os.close(file.descriptor)
  assert file.path.read_bytes().startswith(b"\x7fELF")
  assert file.manifest.compiler == compiler.version(real_compiler)
