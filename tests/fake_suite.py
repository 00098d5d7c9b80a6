"""The command line of the benchmark, on a suite whose costs are known.

  python -m fake_suite COST [FLAG]...
"""

import runpy
import sys
import types

from experiments import benchmark
from experiments.benchmark.runner import Bound, Case

COST = float(sys.argv.pop(1))

fake = types.ModuleType("experiments.benchmark.fake")
fake.cases = lambda: [
  Case(
    "scalars",
    "us",
    {"ours": lambda: lambda: COST, "other": lambda: lambda: 2.0},
    [Bound("ours", "other", 0.5)],
  )
]
sys.modules[fake.__name__] = fake
benchmark.SUITES = ("fake",)
runpy.run_module("experiments.benchmark", run_name="__main__")
