"""A slow object store on the loopback, to read training examples from.

  python -m experiments.store --store_ms=30 --port=9000

It is moto's S3 server. As soon as it is ready, it prints its address, for
`AWS_ENDPOINT_URL`; it takes any credentials, and forgets everything when it
ends. `python -m experiments.put` fills it.
"""

import math
import os
import sys
import threading

from absl import flags

from experiments import command_line
from experiments.store import server, server_flags

flags.adopt_module_key_flags(server_flags)
_PORT = flags.DEFINE_integer(
  "port",
  0,
  "TCP port to listen at, a number. 0: one that is free.",
  lower_bound=0,
)
_UNTIL_INPUT_ENDS = flags.DEFINE_bool(
  "until_input_ends",
  False,
  "Whether to end when the standard input does, and so with the process that "
  "holds its other side.",
)


def main():
  link = server.Link(
    latency_seconds=(server_flags.LATENCY_MS.value or 0.0) / 1e3,
    bytes_per_second=(server_flags.KB_PER_SECOND.value or math.inf) * 1e3,
  )
  with command_line.refusing_in_one_line():
    serving = server.serve(link, port=_PORT.value)
  if _UNTIL_INPUT_ENDS.value:
    threading.Thread(target=_exit_with_input, daemon=True).start()
  print(f"ready: http://127.0.0.1:{serving.port}", flush=True)
  serving.serve_forever()


def _exit_with_input():
  sys.stdin.buffer.read()
  os._exit(0)


if __name__ == "__main__":
  command_line.run(main)
