"""Ports for processes that are yet to start.

Whoever asks the system for a port, or connects to somebody, gets one of a
range. Until a process listens, seconds later, somebody else may have been given
its port. Those here are below that range.
"""

import contextlib
import pathlib
import random
import socket

LOWEST = 10_000
RANGE = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(count):
  """Ports that nobody uses at the moment, nor gets by chance later on."""
  with contextlib.ExitStack() as stack:
    servers = [stack.enter_context(_server()) for _ in range(count)]
    return [server.getsockname()[1] for server in servers]


def _server():
  while True:
    with contextlib.suppress(OSError):
      return socket.create_server(("127.0.0.1", _any_port()))


def _any_port():
  """One below those that the system gives out; 0, one of those, if none is."""
  first = int(RANGE.read_text().split()[0]) if RANGE.exists() else 0
  # Not the same in two processes of tests that were given the same seed.
  return random.SystemRandom().randrange(LOWEST, first) if first > LOWEST else 0
