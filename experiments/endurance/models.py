"""The random uses of `tests/test_models.py`, many times as many as in CI."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]


def run(cases):
  """Compares so many random uses of each kind with their models.

  Args:
    cases: Random uses of each kind, other ones in every run.

  Returns:
    A dict: `cases` of each kind, and the number of `kinds`.

  Raises:
    RuntimeError: if a use does something else than its model, with that use.
  """
  tests = subprocess.run(
    [sys.executable, "-m", "pytest", "-q", "tests/test_models.py"],
    cwd=ROOT,
    env={**_own_environment(), "TFECHO_MODEL_CASES": str(cases)},
    stdout=subprocess.PIPE,
    text=True,
  )
  passed = re.search(r"^(\d+) passed in", tests.stdout, re.MULTILINE)
  if tests.returncode != 0 or not passed:
    raise RuntimeError(f"the tests did not all pass:\n{tests.stdout}")
  return {"cases": cases, "kinds": int(passed[1])}


def _own_environment():
  # In CI, cases are the same every time, and the options others.
  left_out = ("CI", "PYTEST_ADDOPTS")
  return {k: v for k, v in os.environ.items() if k not in left_out}
