"""The queue of echo_on_stall, by itself, under sanitizers.

TensorFlow's own library is not built for a thread sanitizer, so this is why the
queue knows nothing of TensorFlow.
"""

import os
import pathlib
import shutil
import subprocess

import pytest

import tfecho.native

SOURCES = pathlib.Path(tfecho.native.__file__).parent / "src"
STRESS = pathlib.Path(__file__).with_name("stall_queue_stress.cc")

LOCKED = """  State Save() const {
    std::lock_guard<std::mutex> lock(mu_);
"""


@pytest.fixture
def stress(native_ops, tmp_path):
  """Builds and runs the stress: `stress(sanitizer, header)`, the process."""
  compiler = shutil.which("g++") or shutil.which("clang++")
  if compiler is None:
    pytest.skip("there is no compiler that has sanitizers")

  def run(sanitizer, header):
    (tmp_path / "stall_queue.h").write_text(header)
    program = tmp_path / "stress"
    flags = ["-std=c++17", "-O1", "-g", f"-fsanitize={sanitizer}"]
    flags += ["-fno-sanitize-recover=all", f"-I{tmp_path}", "-pthread"]
    subprocess.run([compiler, *flags, "-o", program, STRESS], check=True)
    return subprocess.run(
      [program],
      env={**os.environ, "TSAN_OPTIONS": "halt_on_error=1"},
      stderr=subprocess.PIPE,
      text=True,
      timeout=300,
    )

  return run


def header():
  return (SOURCES / "stall_queue.h").read_text()


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_threads_neither_race_nor_break_a_promise(stress, sanitizer):
  process = stress(sanitizer, header())
  assert process.returncode == 0, process.stderr


def test_a_lock_that_is_missing_would_be_seen(stress):
  assert LOCKED in header()
  unlocked = header().replace(LOCKED, LOCKED.splitlines()[0] + "\n")
  process = stress("thread", unlocked)
  assert process.returncode != 0
  assert "ThreadSanitizer: data race" in process.stderr
