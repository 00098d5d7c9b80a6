"""What the flags of the scripts have in common, read off their sources."""

import ast
import collections
import pathlib

EXPERIMENTS = pathlib.Path(__file__).parents[2] / "experiments"
SCRIPTS = (
  "run.py",
  "compare.py",
  "tune.py",
  "figures/__main__.py",
  "advise.py",
)
# One name, and in each script the same about something of its own: where its
# results go, of which seeds there are how many, where rates come from or go to,
# what reading an example takes.
OF_ITS_OWN = {"output_dir", "seeds", "learning_rates", "upstream_ms"}


def _trees():
  """The sources of whatever defines flags for these scripts."""
  modules = [*EXPERIMENTS.glob("*_flag*.py"), *EXPERIMENTS.glob("*/*_flag*.py")]
  modules += [EXPERIMENTS / script for script in SCRIPTS]
  return [ast.parse(module.read_text()) for module in modules]


def _definitions():
  """Of every flag, how it is defined, as often as it is."""
  found = collections.defaultdict(list)
  for tree in _trees():
    for node in ast.walk(tree):
      if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr.startswith("DEFINE_"):
          found[node.args[0].value].append(node.func.attr)
  return found


def test_a_flag_means_the_same_in_every_script():
  found = _definitions()
  assert {"workload", "precision", "echo_buffer", "batch_size"} <= set(found)
  # `run` takes one; the others a list, for which that is another name.
  several = {name for name, kinds in found.items() if len(kinds) > 1}
  assert several <= {*OF_ITS_OWN, "arm", "factor", "schedule_resolution"}
  for name in OF_ITS_OWN:
    assert len(set(found[name])) == 1, name
