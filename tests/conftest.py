"""What every test shares.

A test that takes `implementation` runs twice: once on the C++ operations and
once on the graph that stands in for them.

  def test_every_element_is_emitted_twice(implementation):
    dataset = tf.data.Dataset.range(3)
    dataset = dataset.apply(tfecho.echo(2, implementation=implementation))

`TFECHO_TEST_IMPLEMENTATIONS`, `graph` or `native,graph`, says which of them to
test. Unset, it means both, but the native half is skipped, with a
reason, on a machine without a compiler. A compiler that fails is a failure.
"""

import collections
import os

# TensorFlow reads this when it is imported, so it stands before the imports.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("MPLBACKEND", "agg")

import hypothesis
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from tfecho import native
from tfecho.native import compiler

IMPLEMENTATIONS = ("native", "graph")
WANTED = os.environ.get("TFECHO_TEST_IMPLEMENTATIONS")

# TensorFlow traces on the first call, which takes as long as it takes: neither
# a deadline nor a slow first example says anything about the code.
hypothesis.settings.register_profile(
  "tfecho",
  deadline=None,
  suppress_health_check=[hypothesis.HealthCheck.too_slow],
  # The same examples on every machine that only checks; new ones for people.
  derandomize="CI" in os.environ,
)
hypothesis.settings.load_profile("tfecho")


def pytest_configure(config):
  """Refuses a misspelt implementation before any test runs."""
  unknown = set(WANTED.split(",") if WANTED else ()) - set(IMPLEMENTATIONS)
  if unknown:
    raise pytest.UsageError(
      "TFECHO_TEST_IMPLEMENTATIONS must be a comma-separated list of "
      f"{IMPLEMENTATIONS}, got {WANTED!r}"
    )


def pytest_terminal_summary(terminalreporter):
  """Says once for each reason how many tests were skipped for it."""
  reports = terminalreporter.stats.get("skipped", [])
  reasons = collections.Counter(report.longrepr[-1] for report in reports)
  for reason, count in reasons.items():
    terminalreporter.write_line(f"{count} x {reason}")


@pytest.fixture(autouse=True)
def no_seed_of_another_test():
  """Takes back the seed that a test before has set for all of TensorFlow.

  What has a seed of its own draws otherwise under it, and bounds on chance hold
  for the draws that they were tried with.
  """
  if context.global_seed() is not None:
    tf.random.set_seed(None)


# Session scope: a property test may take it too, since Hypothesis refuses
# fixtures that would have to be made anew for every example.
@pytest.fixture(scope="session", params=IMPLEMENTATIONS)
def implementation(request):
  """Runs the test once per implementation, named as `echo` names them."""
  if request.param == "native":
    request.getfixturevalue("native_ops")
  else:
    skip_unless_wanted(request.param)
  return request.param


@pytest.fixture(scope="session")
def native_ops():
  """The C++ operations, compiled at most once and kept in the user's cache.

  For tests of what only the native implementation can do.
  """
  skip_unless_wanted("native")
  try:
    return native.load()
  except native.NativeUnavailableError as error:
    if WANTED or has_compiler():
      raise
    pytest.skip(f"only the graph implementation is tested: {error}")


@pytest.fixture(scope="module")
def cluster(native_ops, tmp_path_factory):
  """A tf.data service of real processes, of which all that is killed returns.

  See `services.Service`.
  """
  from processes import ended
  from services import Service

  started = Service(tmp_path_factory.mktemp("service"))
  with ended(started.processes):
    yield started.start()


def skip_unless_wanted(name):
  """Skips the test if `TFECHO_TEST_IMPLEMENTATIONS` leaves `name` out."""
  if WANTED and name not in WANTED.split(","):
    pytest.skip(f"TFECHO_TEST_IMPLEMENTATIONS={WANTED} leaves out {name}")


def has_compiler():
  """Whether there is a program that the native operations compile with."""
  try:
    compiler.find()
  except native.NativeUnavailableError:
    return False
  return True
