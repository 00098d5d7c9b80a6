"""A tf.data service whose workers know the operations of this package.

    python -m experiments.data_service --port=5000 --work_dir=/var/tmp/service
    python -m experiments.data_service --dispatcher=localhost:5000

The first is the dispatcher, of which there is one; the second a worker, of
which there are as many as it takes, on any machine. The dispatcher prints the
address that `tf.data.experimental.service.distribute` wants as soon as it is
ready, and so does a worker that of the dispatcher. With `--work_dir`, a
dispatcher that was killed and is started again at the same port goes on.

All that both need beyond TensorFlow's own is `tfecho.native.load()`: workers to
run an echo, the dispatcher to divide the input of one between them.
"""

import tensorflow as tf
from absl import flags

import tfecho
from experiments import command_line

_DISPATCHER = flags.DEFINE_string(
  "dispatcher",
  None,
  "Address HOST:PORT of the dispatcher that this worker works for. Without it, "
  "this is the dispatcher.",
)
_PORT = flags.DEFINE_integer(
  "port",
  0,
  "TCP port to listen at, a number. 0: one that is free.",
  lower_bound=0,
)
_WORK_DIR = flags.DEFINE_string(
  "work_dir",
  None,
  "Path of a directory in which the dispatcher notes what it has to know when "
  "it is started again.",
)
_HEARTBEAT_MS = flags.DEFINE_integer(
  "heartbeat_ms",
  1_000,
  "Time between two signs of life of a worker, in milliseconds.",
  lower_bound=1,
)

service = tf.data.experimental.service


def dispatcher():
  """Starts the dispatcher."""
  return service.DispatchServer(
    service.DispatcherConfig(
      port=_PORT.value,
      work_dir=_WORK_DIR.value,
      fault_tolerant_mode=_WORK_DIR.value is not None,
    )
  )


def worker():
  """Starts a worker."""
  return service.WorkerServer(
    service.WorkerConfig(
      dispatcher_address=_DISPATCHER.value,
      port=_PORT.value,
      heartbeat_interval_ms=_HEARTBEAT_MS.value,
    )
  )


def main():
  tfecho.native.load()
  if _DISPATCHER.value is None:
    server = dispatcher()
    print(f"ready: {server.target}", flush=True)
  else:
    server = worker()
    print(f"ready: grpc://{_DISPATCHER.value}", flush=True)
  server.join()


if __name__ == "__main__":
  command_line.run(main)
