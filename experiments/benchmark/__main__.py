"""Command line of the benchmarks: `python -m experiments.benchmark --help`."""

import pathlib
import re

from absl import app, flags, logging

from experiments import benchmark
from experiments.benchmark import runner

_SUITE = flags.DEFINE_enum(
  "suite", "all", [*benchmark.SUITES, "all"], "Which suite to run."
)
_CASE = flags.DEFINE_string(
  "case", "", "Run only the cases whose title matches this regular expression."
)
_ROUNDS = flags.DEFINE_integer(
  "rounds",
  21,
  "Rounds, in each of which every contender of a case is measured once.",
  lower_bound=1,
)
flags.DEFINE_alias("repeats", "rounds")
_OUTPUT = flags.DEFINE_string(
  "output", None, "File to write the measurements to, as JSON."
)


def main(argv):
  if len(argv) > 1:
    raise app.UsageError(f"Unexpected arguments: {argv[1:]}.")
  if _OUTPUT.value:
    pathlib.Path(_OUTPUT.value).parent.mkdir(parents=True, exist_ok=True)
  rows = runner.measure(_cases(), _ROUNDS.value, on_case=logging.info)
  rows += [row for suite in _suites() for row in benchmark.summary(suite, rows)]
  print(runner.table(rows))
  if _OUTPUT.value:
    runner.write_json(_OUTPUT.value, rows)
  return runner.exit_status(rows)


def _suites():
  return benchmark.SUITES if _SUITE.value == "all" else (_SUITE.value,)


def _cases():
  """The cases that were asked for; an error where there are none."""
  cases = [case for s in _suites() for case in benchmark.load(s).cases()]
  try:
    selected = [case for case in cases if re.search(_CASE.value, case.what)]
  except re.error as error:
    raise app.UsageError(f"--case={_CASE.value}: {error}.") from error
  if not selected:
    titles = "\n  ".join(case.what for case in cases)
    raise app.UsageError(f"--case={_CASE.value} matches none of\n  {titles}")
  return selected


if __name__ == "__main__":
  logging.set_verbosity(logging.INFO)
  app.run(main)
