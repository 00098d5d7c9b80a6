"""Several processes of one test: started together, and ended whatever happens.

  reports = run_workers("sharded_workers.py", pattern, folder=tmp_path)

What they print goes to files, which are shown if one of them fails. Errors have
a file of their own: gRPC logs there whenever it likes, in the midst of a line.
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from ports import free_ports

PATIENCE = 240  # Seconds after which a process has hung.

HERE = pathlib.Path(__file__).parent
# What a worker says if somebody took its port before it could.
PORT_IS_TAKEN = "Could not start gRPC server"
ATTEMPTS = 3


class Process:
  """A Python process whose output goes to files.

  Attributes:
    name: what to call it in errors.
  """

  def __init__(self, *arguments, name, folder, **variables):
    """Starts `python *arguments`, with further environment variables."""
    self.name = name
    self._output = pathlib.Path(folder, f"{name}.out")
    self._errors = pathlib.Path(folder, f"{name}.err")
    with self._output.open("w") as output, self._errors.open("w") as errors:
      self._process = subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        env={
          **os.environ,
          "PYTHONPATH": os.pathsep.join(sys.path),
          # Each would take all of the memory of the same GPU.
          "CUDA_VISIBLE_DEVICES": "",
          **variables,
        },
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
      )

  @property
  def pid(self):
    return self._process.pid

  @property
  def status(self):
    """How it ended, or None while it runs."""
    return self._process.poll()

  def output(self):
    """What it has printed."""
    return self._output.read_text(errors="replace")

  def everything(self):
    """What it has printed, and then the errors and the log."""
    return self.output() + self._errors.read_text(errors="replace")

  def wait_for(self, text):
    """Returns the output as soon as `text` is a part of it."""
    deadline = time.monotonic() + PATIENCE
    while True:
      ended, output = self.status is not None, self.output()
      if text in output:
        return output
      if ended or time.monotonic() > deadline:
        raise AssertionError(
          f"{self.name} never said {text!r}:\n{self.everything()}"
        )
      time.sleep(0.05)

  def wait(self):
    """Returns how it ended."""
    try:
      return self._process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
      raise AssertionError(f"{self.name} hangs:\n{self.everything()}") from None

  def kill(self):
    """Ends it at once, as a machine does that loses its power."""
    with contextlib.suppress(ProcessLookupError):
      os.kill(self.pid, signal.SIGKILL)
    self._process.wait()


@contextlib.contextmanager
def ended(processes):
  """Kills those of `processes` that still run, whatever happened."""
  try:
    yield processes
  finally:
    for process in processes:
      process.kill()


def run_workers(script, *arguments, folder, count=2):
  """Runs a script as the workers of one cluster, as TF_CONFIG describes them.

  Returns:
    The last line that each of them printed, as JSON.
  """
  for _ in range(ATTEMPTS):
    with ended(_start_workers(script, arguments, folder, count)) as workers:
      statuses = _wait_for_all(workers)
    if not any(statuses):
      return [_last_line(worker.output()) for worker in workers]
    everything = [worker.everything() for worker in workers]
    if not any(PORT_IS_TAKEN in text for text in everything):
      break
  raise AssertionError("\n".join([f"ended with {statuses}", *everything]))


def _last_line(output):
  return json.loads(output.splitlines()[-1])


def _start_workers(script, arguments, folder, count):
  addresses = [f"127.0.0.1:{port}" for port in free_ports(count)]
  return [
    Process(
      HERE / script,
      *arguments,
      name=f"worker-{i}",
      folder=folder,
      TF_CONFIG=json.dumps(
        {
          "cluster": {"worker": addresses},
          "task": {"type": "worker", "index": i},
        }
      ),
    )
    for i in range(count)
  ]


def _wait_for_all(workers):
  """How they ended, or were ended because another one had failed."""
  deadline = time.monotonic() + PATIENCE
  while any(worker.status is None for worker in workers):
    failed = any(worker.status for worker in workers)
    if failed or time.monotonic() > deadline:
      for worker in workers:
        worker.kill()
    time.sleep(0.05)
  return [worker.status for worker in workers]
