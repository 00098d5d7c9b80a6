"""Measurements that nobody took, for tests of what follows from them."""

import pytest

from tfecho.advice.costs import Cost, Measurements, Place


def cost(ms, cpu_ms=0.0):
  return Cost(ms / 1e3, cpu_ms / 1e3)


@pytest.fixture
def measured():
  """Returns a function that makes `Measurements`, all times in milliseconds.

  Upstream and downstream times are given by place, in order; what was measured
  without an echo is by default what the model says of it.
  """

  def make(
    upstream,
    downstream,
    *,
    cpu_up=None,
    cpu_down=None,
    stages=None,
    cores=2,
    **changed,
  ):
    cpu_up = cpu_up or dict.fromkeys(upstream, 0.0)
    cpu_down = cpu_down or dict.fromkeys(downstream, 0.0)
    places = {
      name: Place(
        cost(upstream[name], cpu_up[name]),
        cost(downstream[name], cpu_down[name]),
        1000.0,
      )
      for name in upstream
    }
    step = places["batch"].downstream
    baseline = max(
      upstream["batch"],
      downstream["batch"],
      (cpu_up["batch"] + cpu_down["batch"]) / cores,
    )
    fields = {
      "batch_size": 32,
      "cores": cores,
      "stages": {
        name: cost(ms) for name, ms in {"source": 0.1, **(stages or {})}.items()
      },
      "places": places,
      "step": step,
      "baseline": cost(baseline, cpu_up["batch"] + cpu_down["batch"]),
    }
    return Measurements(**{**fields, **changed})

  return make


@pytest.fixture
def slow_storage(measured):
  """Reading waits 40 ms for a batch, training takes 10, the rest little."""
  return measured(
    {"read": 40.0, "decode": 40.0, "augment": 40.0, "batch": 40.0},
    {"read": 10.0, "decode": 10.0, "augment": 10.0, "batch": 10.0},
    stages={"read": 40.0, "decode": 2.0, "augment": 1.0, "batch": 0.1},
  )


@pytest.fixture
def heavy_augmentation(measured):
  """Augmenting takes 30 ms of both cores for a batch, training takes 10."""
  return measured(
    {"decode": 5.0, "augment": 35.0, "batch": 35.0},
    {"decode": 30.0, "augment": 10.0, "batch": 10.0},
    cpu_up={"decode": 10.0, "augment": 70.0, "batch": 70.0},
    cpu_down={"decode": 60.0, "augment": 0.0, "batch": 0.0},
    stages={"decode": 5.0, "augment": 30.0, "batch": 0.1},
  )


@pytest.fixture
def not_bound(measured):
  """Training takes 50 ms, its input 4."""
  return measured(
    {"decode": 3.0, "batch": 4.0},
    {"decode": 50.0, "batch": 50.0},
    stages={"decode": 3.0, "batch": 1.0},
  )
