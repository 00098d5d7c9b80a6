"""What Pillow takes to crop a JPEG, in a process of its own.

    probe = start(contents, windows, (224, 224), at_a_time=50)
    probe()  # milliseconds per image

In a process of its own, since Pillow-SIMD is a package of the same name: which
of the two is measured is decided by what `path` puts in front.
"""

import base64
import io
import itertools
import json
import os
import subprocess
import sys
import time
import weakref


def start(contents, windows, size, *, at_a_time, path=None):
  """Starts a process that crops, and returns a probe.

  Args:
    contents: `bytes` of a JPEG file.
    windows: Lists of left, upper, right and lower edge, used in turn.
    size: Height and width of the result, in pixels.
    at_a_time: Crops that a measurement makes.
    path: Folder with the package to measure; None for the one installed.

  Returns:
    A function that measures once and returns milliseconds per image.

  Raises:
    RuntimeError: If the process ends before it has anything to say.
  """
  process = subprocess.Popen(
    [sys.executable, "-m", __name__],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    text=True,
    env=_environment(path),
  )
  task = {
    "contents": base64.b64encode(contents).decode(),
    "windows": windows,
    "size": size,
    "at_a_time": at_a_time,
  }

  def ask(line):
    print(line, file=process.stdin, flush=True)
    answer = process.stdout.readline()
    if not answer:
      raise RuntimeError(f"Pillow ended with exit status {process.wait()}")
    return json.loads(answer)

  def probe():
    return ask("")

  weakref.finalize(probe, _end, process)
  ask(json.dumps(task))
  return probe


def _end(process):
  """Lets it come to the end of its questions."""
  with process:
    process.stdin.close()


def _environment(path):
  """Lets the process import `PIL` from a folder."""
  folders = [path and str(path), os.environ.get("PYTHONPATH")]
  joined = os.pathsep.join(filter(None, folders))
  return {**os.environ, "PYTHONPATH": joined} if joined else None


def _answer(lines):
  """Takes a task from the first line, and the time for every line."""
  import numpy as np
  from PIL import Image

  task = json.loads(next(lines))
  contents = base64.b64decode(task["contents"])
  windows = itertools.cycle(task["windows"])
  size = task["size"][::-1]

  def measure():
    begin = time.perf_counter()
    for box in itertools.islice(windows, task["at_a_time"]):
      image = Image.open(io.BytesIO(contents)).crop(box)
      np.asarray(image.resize(size, Image.BILINEAR))
    return 1e3 * (time.perf_counter() - begin) / task["at_a_time"]

  yield measure()
  for _ in lines:
    yield measure()


if __name__ == "__main__":
  for answer in _answer(sys.stdin):
    print(json.dumps(answer), flush=True)
