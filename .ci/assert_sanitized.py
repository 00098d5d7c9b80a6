"""Fails unless the sanitizers see what the native operations do wrong.

Run with an operations' library that was built with both sanitizers, and their
runtime preloaded. Each fault is committed in a process of its own, by that
library: it is made to write its histogram where it must not.
"""

import ctypes
import subprocess
import sys

import tensorflow as tf

import tfecho

# name: bytes for one number, offset of where it is written, the report
FAULTS = {
  "too small a buffer": (4, 0, "AddressSanitizer: heap-buffer-overflow"),
  "an odd address": (16, 1, "runtime error: store to misaligned address"),
}


def commit(name):
  """Has a number of copies written to a bad place."""
  size, offset, _ = FAULTS[name]
  stats = tfecho.Stats()
  list(tf.data.Dataset.range(3).apply(tfecho.echo(2, stats=stats)))
  malloc = ctypes.CDLL(None).malloc
  malloc.restype = ctypes.c_void_p
  tfecho.native.load().c.TfechoStatsHistogram(
    ctypes.c_int64(stats.id),
    ctypes.c_int64(1),
    ctypes.c_void_p(malloc(size) + offset),
    ctypes.byref(ctypes.c_int64()),
  )


def main():
  """Looks for the report of every fault."""
  for name, (_, _, report) in FAULTS.items():
    process = subprocess.run(
      [sys.executable, __file__, name], stderr=subprocess.PIPE, text=True
    )
    if process.returncode == 0 or report not in process.stderr:
      raise SystemExit(f"{name}: no {report!r} in:\n{process.stderr}")
    print(f"{name}: seen")


if len(sys.argv) > 1:
  commit(sys.argv[1])
else:
  main()
