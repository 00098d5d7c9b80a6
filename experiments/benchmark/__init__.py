"""Measured claims: what the transformations cost, against a stated bound.

    python -m experiments.benchmark --suite=overhead
    python -m experiments.benchmark --suite=all --output=benchmark.json

Contenders run side by side, round by round, in one process. Absolute times
belong to the machine and the hour; the bounds are on ratios. The exit status
is 1 where a bound is missed.

A suite is a module of this package with a function `cases()`, and its name
here. Where something is claimed of several cases together, it also has a
function `summary(rows)`, which returns further rows.
"""

import importlib

SUITES = (
  "overhead", "ideal", "stall", "advice", "precision", "layout", "decode",
  "augmentation", "service",
)


def load(suite):
  """The module of a suite, imported only when it is asked for."""
  return importlib.import_module(f"{__name__}.{suite}")


def summary(suite, rows):
  """The rows that a suite makes of those of its cases."""
  make = getattr(load(suite), "summary", None)
  return make(rows) if make else []
