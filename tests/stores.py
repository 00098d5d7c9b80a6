"""Stores on the loopback that tests read over real HTTP.

  with HttpStore({"name": b"contents"}) as store:
    store.faults["name"] = [503, "cut"]
    tfecho.remote.read_file(store.url("name"))
    store.requests["name"]  # 3
"""

import collections
import http.server
import threading
import urllib.parse
import urllib.request

import tensorflow as tf

# An error of the function, by itself or as TensorFlow hands it on from a graph.
READ_ERRORS = (OSError, tf.errors.OpError)

PATIENCE = 60  # Seconds after which whoever did not come will not.


class HttpStore(http.server.ThreadingHTTPServer):
  """Objects by name, and what goes wrong with the next requests for them.

  Attributes:
    objects: the contents by name.
    faults: for a name, what happens to the next requests, in turn: a status,
      or "cut" in the middle of the contents, "reset" before any answer,
      "wait" for `resumed`, and be answered then, or "hang" until the store is
      closed.
    requests: how often each name was asked for.
    together: how many requests have to be there before any is answered.
  """

  daemon_threads = True
  # A connection too many would be refused, and tried again a second later.
  request_queue_size = 100

  def __init__(self, objects=()):
    super().__init__(("127.0.0.1", 0), _Handler)
    self.objects = dict(objects)
    self.faults = {}
    self.requests = collections.Counter()
    self.together = None
    self.resumed = threading.Event()
    self.closing = threading.Event()
    self.lock = threading.Lock()

  def __enter__(self):
    threading.Thread(target=self.serve_forever, daemon=True).start()
    return self

  def __exit__(self, *unused_error):
    self.closing.set()
    self.resumed.set()
    self.shutdown()
    self.server_close()

  def url(self, name):
    return f"http://127.0.0.1:{self.server_port}/{name}"

  def meet(self, count):
    """Lets requests wait for each other: `count` must be there at once."""
    self.together = threading.Barrier(count, timeout=PATIENCE)

  def fault(self, name):
    """Counts a request, and says what is to go wrong with it, if anything."""
    with self.lock:
      self.requests[name] += 1
      faults = self.faults.get(name)
      return faults.pop(0) if faults else None

  def handle_error(self, *unused_request):
    """Says nothing about clients that hang up."""


class _Handler(http.server.BaseHTTPRequestHandler):
  protocol_version = "HTTP/1.1"

  def do_GET(self):
    name = urllib.parse.unquote(self.path[1:])
    fault = self.server.fault(name)
    if self.server.together:
      self.server.together.wait()
    if fault == "hang":
      self.server.closing.wait()
    if fault == "wait":
      self.server.resumed.wait(PATIENCE)
      fault = None
    if fault in ("hang", "reset"):
      self.close_connection = True
    elif fault in (None, "cut") and name in self.server.objects:
      self._send(self.server.objects[name], cut=fault == "cut")
    else:
      self.send_response(404 if fault in (None, "cut") else fault)
      self.send_header("Content-Length", "0")
      self.end_headers()

  def _send(self, contents, *, cut):
    self.send_response(200)
    self.send_header("Content-Length", str(len(contents)))
    self.end_headers()
    self.wfile.write(contents[: len(contents) // 2] if cut else contents)
    self.close_connection = cut

  def log_message(self, *unused_arguments):
    """Nothing: the output of a test belongs to the test."""


def texts(iterator):
  """Returns the rest of `iterator`, scalar strings, as a list of bytes."""
  return [element.numpy() for element in iterator]


def put(url, contents=b""):
  """Writes an object, or makes a bucket, in moto's server."""
  # A signature that nobody checks; without one, this would be a stranger.
  credential = "key/20260101/us-east-1/s3/aws4_request"
  request = urllib.request.Request(
    url,
    data=contents,
    headers={
      "Authorization": f"AWS4-HMAC-SHA256 Credential={credential}",
      "Content-Type": "application/octet-stream",
    },
    method="PUT",
  )
  with urllib.request.urlopen(request) as answer:
    assert answer.status == 200
