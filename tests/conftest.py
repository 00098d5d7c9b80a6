"""What every test shares.

A test that takes `implementation` runs twice: once on the C++ operations and
once on the graph that stands in for them.

  def test_every_element_is_emitted_twice(implementation):
    dataset = tf.data.Dataset.range(3)
    dataset = dataset.apply(tfecho.echo(2, implementation=implementation))

Where there is no compiler, `TFECHO_TEST_IMPLEMENTATIONS=graph` skips the native
half. Without that variable a library that cannot be built is a failure: a suite
that quietly tests half of the product is worse than one that stops.
"""

import os

# TensorFlow reads this when it is imported, so it stands before the imports.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("MPLBACKEND", "agg")

import hypothesis
import pytest

IMPLEMENTATIONS = ("native", "graph")

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


def wanted_implementations():
  """The implementations that this run covers, from the environment."""
  wanted = os.environ.get("TFECHO_TEST_IMPLEMENTATIONS")
  wanted = IMPLEMENTATIONS if wanted is None else tuple(wanted.split(","))
  unknown = set(wanted) - set(IMPLEMENTATIONS)
  if unknown:
    raise pytest.UsageError(
      "TFECHO_TEST_IMPLEMENTATIONS must be a comma-separated list of "
      f"{IMPLEMENTATIONS}, got {sorted(unknown)}"
    )
  return wanted


def pytest_configure(config):
  """Refuses a misspelt variable before any test runs."""
  wanted_implementations()


@pytest.fixture(scope="session")
def native_ops():
  """Loads the C++ operations, built at most once and kept in the user's cache.

  For tests of what only the native implementation can do.
  """
  if "native" not in wanted_implementations():
    pytest.skip("TFECHO_TEST_IMPLEMENTATIONS leaves out the native operations")
  from tfecho import native

  return native.load()


# Session scope: a property test may take it too, since Hypothesis refuses
# fixtures that would have to be made anew for every example.
@pytest.fixture(scope="session", params=IMPLEMENTATIONS)
def implementation(request):
  """Runs the test once per implementation, named as `echo` names them."""
  if request.param not in wanted_implementations():
    pytest.skip(f"TFECHO_TEST_IMPLEMENTATIONS leaves out {request.param!r}")
  if request.param == "native":
    request.getfixturevalue("native_ops")
  return request.param
