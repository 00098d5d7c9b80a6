"""Starts a slow store in a process of its own, so that it takes no turns here.

```python
store = start(latency_ms=30, kb_per_second=500)
workload = workloads.get("resnet32_cifar10", "small")
store.fill(workload)
workload = store.holding(workload)
...
store.counts()  # {"requests": 2594, "bytes": 311232}
store.close()
```
"""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys
import urllib.request

import tfecho
from experiments.store import objects, server

_CHECKOUT = pathlib.Path(__file__).parents[2]


def start(*, latency_ms=0.0, kb_per_second=None):
  """Starts a store that ends with this process, however that ends.

  Args:
    latency_ms: From a request to the first byte of its answer.
    kb_per_second: Thousands of bytes a second, of all answers together; None
      for no limit.

  Returns:
    A `Store`.

  Raises:
    RuntimeError: If it does not start.
  """
  limits = [f"--store_ms={latency_ms}"]
  if kb_per_second is not None:
    limits.append(f"--store_kb_per_second={kb_per_second}")
  process = subprocess.Popen(
    [sys.executable, "-m", "experiments.store", "--until_input_ends", *limits],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    cwd=_CHECKOUT,
    text=True,
  )
  ready = re.match(r"ready: (\S+)", process.stdout.readline())
  if ready is None:
    raise RuntimeError(f"the store ended with status {_end(process)}")
  return Store(process, ready[1])


def _end(process):
  """Ends it, if it has not done so itself; returns its status."""
  process.stdin.close()
  process.stdout.close()
  return process.wait()


class Store:
  """A store that runs, for the examples of one workload.

  Attributes:
    endpoint: Address of the server.
    url: Where the examples are.
    storage_options: What fsspec reaches it with.
  """

  def __init__(self, process, endpoint):
    self.endpoint = endpoint
    self.url = f"s3://{server.BUCKET}"
    self.storage_options = {
      "key": "any",
      "secret": "any",
      "client_kwargs": {"endpoint_url": endpoint, "region_name": "us-east-1"},
    }
    self._process = process

  def fill(self, workload):
    """Puts the training examples of a workload of images into it."""
    objects.put(workload, self.url, storage_options=self.storage_options)

  def holding(self, workload):
    """Returns the workload that it was filled with, but read from here."""
    read = tfecho.remote.reader(storage_options=self.storage_options)
    return objects.stored(workload, self.url, read=read)

  def counts(self):
    """Returns how many GETs there were so far, and the bytes of the answers."""
    with urllib.request.urlopen(self.endpoint + server.COUNTS) as answer:
      return json.load(answer)

  def close(self):
    """Ends it."""
    _end(self._process)
