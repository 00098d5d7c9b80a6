"""An S3 server on the loopback, as slow as it is told to be: moto's.

```python
serve(Link(latency_seconds=0.03), port=9000).serve_forever()
```

Every answer to a GET is sent over one link, and counted; `COUNTS` is where the
server says what it came to.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import math
import threading
import time

BUCKET = "examples"  # There from the start.
COUNTS = "/-/counts"  # No bucket has such a name.

# Nobody checks it, but without one this would be a stranger.
_CREDENTIAL = "any/20260101/us-east-1/s3/aws4_request"
_SIGNATURE = f"AWS4-HMAC-SHA256 Credential={_CREDENTIAL}"


class Link:
  """When answers arrive: each so much later, and all over one line.

  Latencies of several answers pass at the same time; their bytes go one after
  the other.
  """

  def __init__(self, *, latency_seconds=0.0, bytes_per_second=math.inf):
    """Describes the link.

    Args:
      latency_seconds: From a request to the first byte of its answer.
      bytes_per_second: Of all answers together.
    """
    self._latency_seconds = latency_seconds
    self._bytes_per_second = bytes_per_second
    self._free = -math.inf
    self._lock = threading.Lock()

  def arrival(self, asked, size):
    """Returns when the last byte of an answer is there.

    Args:
      asked: When it was asked for, in seconds.
      size: Bytes in it.
    """
    with self._lock:
      start = max(asked + self._latency_seconds, self._free)
      self._free = start + size / self._bytes_per_second
      return self._free


def check_installed():
  """Raises ValueError if there is nothing to serve with."""
  for module in ("moto", "flask", "s3fs"):
    if importlib.util.find_spec(module) is None:
      raise ValueError(
        f"an S3 server on the loopback needs {module}: pip install"
        " 'tfecho[store]', with Python 3.10 or later"
      )


def serve(link, *, port=0):
  """Returns a server at a port of the loopback, that is to be started.

  Args:
    link: `Link` between it and its clients.
    port: Number of the port; 0 for one that is free.

  Raises:
    ValueError: If moto is not installed.
  """
  check_installed()
  from moto import server as moto
  from werkzeug import serving, test

  # Otherwise it writes a line for each request.
  logging.getLogger("werkzeug").setLevel(logging.WARNING)
  store = moto.DomainDispatcherApplication(moto.create_backend_app)
  test.Client(store).put(f"/{BUCKET}", headers={"Authorization": _SIGNATURE})
  return serving.make_server(
    "127.0.0.1",
    port,
    _Counted(store, link),
    threaded=True,
    request_handler=moto.MotoRequestHandler,
  )


class _Counted:
  """A WSGI application behind a link, that counts what it sends."""

  def __init__(self, application, link):
    self._application = application
    self._link = link
    self._lock = threading.Lock()
    self._counts = {"requests": 0, "bytes": 0}

  def __call__(self, environ, start_response):
    asked = time.monotonic()
    if environ["PATH_INFO"] == COUNTS:
      start_response("200 OK", [("Content-Type", "application/json")])
      return [json.dumps(self._counts).encode()]
    answer = self._application(environ, start_response)
    if environ["REQUEST_METHOD"] != "GET":
      return answer
    contents = b"".join(answer)
    with self._lock:
      self._counts["requests"] += 1
      self._counts["bytes"] += len(contents)
    arrival = self._link.arrival(asked, len(contents))
    time.sleep(max(0.0, arrival - time.monotonic()))
    return [contents]
