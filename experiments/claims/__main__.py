"""Prints the verdicts on recorded runs as tables in Markdown: all, then each.

python -m experiments.claims --results=a.jsonl,b.jsonl
"""

from __future__ import annotations

from absl import flags

from experiments import claims, command_line, comparisons

_RESULTS = flags.DEFINE_list(
  "results",
  None,
  "Paths of files of recorded runs, a comma-separated list.",
  required=True,
)


def main():
  with command_line.refusing_in_one_line():
    with command_line.blaming("results", OSError):
      finished = comparisons.load(_RESULTS.value)
    groups = claims.group(finished)
    tables = [claims.markdown(recorded) for recorded in groups]
  print("\n".join([f"{claims.overview(groups)}\n", *tables]), end="")


if __name__ == "__main__":
  command_line.run(main)
