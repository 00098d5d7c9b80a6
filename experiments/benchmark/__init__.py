"""Measured claims: what the transformations cost, against a stated bound.

    python -m experiments.benchmark --suite=overhead
    python -m experiments.benchmark --suite=all --output=benchmark.json

Contenders run side by side, round by round, in one process. Absolute times
belong to the machine and the hour; the bounds are on ratios. The exit status
is 1 where a bound is missed.

A suite is a module of this package with a function `cases()`, and its name
here.
"""

import importlib

SUITES = ("overhead", "ideal", "stall", "precision", "layout", "decode")


def load(suite):
  """The module of a suite, imported only when it is asked for."""
  return importlib.import_module(f"{__name__}.{suite}")
