"""A tf.data service of real processes, any of which may be killed.

  served = Service(folder)
  with ended(served.processes):
    served.start()
    data.apply(served.distribute("distributed_epoch"))
"""

import tensorflow as tf
from ports import free_ports
from processes import Process

WORKERS = 2

service = tf.data.experimental.service


class Service:
  """A dispatcher and its workers, each a process.

  Attributes:
    processes: all that were started.
    workers: those of them that work now.
  """

  def __init__(self, folder):
    self._folder = folder
    self._port, *self._worker_ports = free_ports(1 + WORKERS)
    self.processes = []

  @property
  def address(self):
    """Of the dispatcher, as HOST:PORT."""
    return f"localhost:{self._port}"

  def start(self):
    self.start_dispatcher()
    self.workers = [self._start_worker(port) for port in self._worker_ports]
    for worker in self.workers:
      worker.wait_for("ready")
    return self

  def start_dispatcher(self):
    flags = (f"--port={self._port}", f"--work_dir={self._folder}/dispatcher")
    self.dispatcher = self._start("dispatcher", *flags)
    self.dispatcher.wait_for("ready")

  def restart_worker(self, index):
    """Kills a worker, and starts another one at its address."""
    self.workers[index].kill()
    self.workers[index] = self._start_worker(self._worker_ports[index])
    self.workers[index].wait_for("ready")

  def _start_worker(self, port):
    dispatcher = f"--dispatcher=localhost:{self._port}"
    return self._start("worker", dispatcher, f"--port={port}")

  def distribute(self, policy, **options):
    target = f"grpc://{self.address}"
    return service.distribute(policy, target, **options)

  def _start(self, name, *flags):
    process = Process(
      "-m",
      "experiments.data_service",
      "--heartbeat_ms=100",
      *flags,
      name=f"{name}-{len(self.processes)}",
      folder=self._folder,
    )
    self.processes.append(process)
    return process
