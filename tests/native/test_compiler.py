"""Which compiler is called, with which arguments, and what if it fails."""

import ctypes
import os

import pytest

from tfecho.native import NativeUnavailableError, compiler
from tfecho.native.errors import CompilationError

# Everything that means something to a shell.
SHELL = "-a b;$(touch broken)&'\"*?`~#|<>\\%s@é"


def executable(path):
  path.parent.mkdir(exist_ok=True, parents=True)
  path.write_text("#!/bin/sh\n")
  path.chmod(0o755)
  return path


@pytest.mark.parametrize(
  # programs on the PATH, the one that is taken
  "there, taken",
  [
    (["clang++", "g++", "c++"], "c++"),
    (["clang++", "g++"], "g++"),
    (["clang++"], "clang++"),
  ],
)
def test_the_usual_names_are_tried_in_order(
  tmp_path, monkeypatch, there, taken
):
  monkeypatch.delenv("CXX", raising=False)
  monkeypatch.setenv("PATH", str(tmp_path))
  for name in there:
    executable(tmp_path / name)
  assert compiler.find() == [str(tmp_path / taken)]


def test_without_a_compiler_the_error_says_what_was_tried(no_compiler):
  with pytest.raises(NativeUnavailableError, match="none of c[+][+], g[+][+]"):
    compiler.find()


@pytest.mark.parametrize("blank", ["", "  "])
def test_a_blank_variable_is_one_that_is_not_set(
  tmp_path, monkeypatch, blank
):
  monkeypatch.setenv("CXX", blank)
  monkeypatch.setenv("PATH", str(tmp_path))
  executable(tmp_path / "c++")
  assert compiler.find() == [str(tmp_path / "c++")]


def test_the_variable_may_hold_arguments(tmp_path, monkeypatch):
  ccache = executable(tmp_path / "ccache")
  monkeypatch.setenv("PATH", str(tmp_path))
  monkeypatch.setenv("CXX", "ccache g++ '-D A'")
  assert compiler.find() == [str(ccache), "g++", "-D A"]


def test_the_variable_may_be_a_path_that_a_shell_would_take_apart(
  tmp_path, monkeypatch
):
  path = executable(tmp_path / SHELL / "c++")
  monkeypatch.setenv("CXX", str(path))
  assert compiler.find() == [str(path)]


def test_the_variable_may_be_a_path_from_where_the_process_is(
  tmp_path, monkeypatch
):
  path = executable(tmp_path / "my compilers" / "c++")
  monkeypatch.chdir(tmp_path)
  monkeypatch.setenv("CXX", "./my compilers/c++")
  assert compiler.find() == [str(path)]


@pytest.mark.parametrize("wrong", ["no-such-compiler -O2", "'unbalanced"])
def test_a_variable_that_names_no_program_is_an_error_that_shows_it(
  tmp_path, monkeypatch, wrong
):
  executable(tmp_path / "c++")
  monkeypatch.setenv("PATH", str(tmp_path))
  monkeypatch.setenv("CXX", wrong)
  with pytest.raises(NativeUnavailableError) as caught:
    compiler.find()
  assert repr(wrong) in str(caught.value)


def test_every_source_is_compiled_and_all_are_linked(
  tmp_path, sources, fake_compiler
):
  (sources / "more.cc").write_text("")
  (sources / "header.h").write_text("")
  output = tmp_path / "out.so"
  command = [str(fake_compiler.path)]
  compiler.build(command, sources, output, ["-O2"], ["-lx"])
  compilations = sorted(
    call.split(" -o ")[0] for call in fake_compiler.calls()[:-1]
  )
  assert compilations == [
    f"-O2 -c {sources / 'answer.cc'}",
    f"-O2 -c {sources / 'more.cc'}",
  ]
  link = fake_compiler.calls()[-1].split()
  assert [os.path.basename(argument) for argument in link] == [
    "-shared", "answer.cc.o", "more.cc.o", "-lx", "-o", "out.so",
  ]
  assert output.exists()


def test_no_shell_touches_folders_and_flags(
  tmp_path, monkeypatch, real_compiler
):
  monkeypatch.chdir(tmp_path)
  folder = tmp_path / SHELL
  folder.mkdir()
  (folder / f"{SHELL}.cc").write_text(
    '#include <odd.h>\nextern "C" const char* text() { return TEXT; }\n'
  )
  (folder / "odd.h").write_text("")
  output = folder / "out.so"
  flags = ["-fPIC", "-isystem", str(folder), '-DTEXT="a; $(touch b) \'"']
  compiler.build(real_compiler, folder, output, flags, [f"-L{folder}"])
  text = ctypes.CDLL(str(output)).text
  text.restype = ctypes.c_char_p
  assert text() == b"a; $(touch b) '"
  assert [path.name for path in tmp_path.iterdir()] == [SHELL]


def test_nothing_where_the_process_happens_to_be_takes_part(
  tmp_path, monkeypatch, sources, real_compiler
):
  foreign = tmp_path / "foreign"
  for name in ("c++", "g++", "clang++", "cc1plus", "as", "ld", "collect2"):
    executable(foreign / name).write_text("#!/bin/sh\necho > executed\n")
  (foreign / "cstdio").write_text("#error foreign\n")
  (sources / "answer.cc").write_text(
    '#include <cstdio>\nextern "C" int answer() { return 42; }\n'
  )
  before = sorted(foreign.iterdir())
  monkeypatch.chdir(foreign)
  for variable in ("CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH"):
    monkeypatch.setenv(variable, ":.")
  monkeypatch.setenv("COMPILER_PATH", ".")
  monkeypatch.setenv("TMPDIR", ".")
  monkeypatch.setenv("PATH", f":.:{os.environ['PATH']}")
  monkeypatch.delenv("CXX", raising=False)
  command = compiler.find()
  assert os.path.dirname(command[0]) != str(foreign)
  assert compiler.version(command) != "unknown"
  compiler.build(command, sources, tmp_path / "out.so", ["-fPIC"], [])
  assert ctypes.CDLL(str(tmp_path / "out.so")).answer() == 42
  assert sorted(foreign.iterdir()) == before


def test_flags_for_other_builds_are_not_for_this_one(
  tmp_path, monkeypatch, sources, fake_compiler
):
  for name in ("CFLAGS", "CPPFLAGS", "CXXFLAGS", "LDFLAGS", "LDLIBS"):
    monkeypatch.setenv(name, "-DHOSTILE -fplugin=hostile.so")
  command = [str(fake_compiler.path)]
  compiler.build(command, sources, tmp_path / "out.so", ["-O2"], ["-lx"])
  assert "hostile" not in " ".join(fake_compiler.calls()).lower()


def test_a_failure_shows_the_compilers_words_and_stops(
  tmp_path, sources, failing_compiler
):
  command = [str(failing_compiler.path)]
  with pytest.raises(CompilationError) as caught:
    compiler.build(command, sources, tmp_path / "out.so", [], [])
  assert str(failing_compiler.path) in caught.value.summary
  assert "exit status 3" in caught.value.summary
  assert "no such type" not in caught.value.summary
  assert "no such type" in str(caught.value)
  assert failing_compiler.links() == 0


def test_a_program_that_cant_be_run_is_an_error(tmp_path, sources):
  program = tmp_path / "not-a-program"
  program.write_bytes(b"\0")
  program.chmod(0o755)
  with pytest.raises(CompilationError, match="can't be started"):
    compiler.build([str(program)], sources, tmp_path / "out.so", [], [])


def test_a_folder_without_sources_is_an_error(tmp_path, fake_compiler):
  with pytest.raises(CompilationError, match="no C[+][+] sources"):
    compiler.build([str(fake_compiler.path)], tmp_path, tmp_path, [], [])


def test_the_compiler_is_named_by_its_own_first_line(
  fake_compiler, failing_compiler
):
  assert compiler.version([str(fake_compiler.path)]) == "fake compiler 1.0"
  assert compiler.version(["false"]) == "unknown"
