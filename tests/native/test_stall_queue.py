"""The queue of echo_on_stall, by itself, under a thread sanitizer.

TensorFlow's own library is not built for one, so this is why the queue knows
nothing of TensorFlow.
"""

import pathlib
import shutil
import subprocess

import pytest

import tfecho.native

SOURCES = pathlib.Path(tfecho.native.__file__).parent / "src"
STRESS = pathlib.Path(__file__).with_name("stall_queue_stress.cc")


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_threads_neither_race_nor_break_a_promise(
  native_ops, sanitizer, tmp_path
):
  compiler = shutil.which("g++") or shutil.which("clang++")
  if compiler is None:
    pytest.skip("there is no compiler that has sanitizers")
  program = tmp_path / "stress"
  subprocess.run(
    [
      compiler,
      "-std=c++17",
      "-O1",
      "-g",
      f"-fsanitize={sanitizer}",
      "-fno-sanitize-recover=all",
      f"-I{SOURCES}",
      "-pthread",
      "-o",
      program,
      STRESS,
    ],
    check=True,
  )
  subprocess.run([program], check=True, timeout=300)
