"""The main job as a person starts it: one small real run, and refusals."""

import re

import pytest
import scripts

from experiments import records

TINY = [
  "--arms=baseline,after_batch",
  "--seeds=1",
  "--measure=target,final",
  "--targets=0.001",
  "--max_steps=8",
  "--final_steps=2",
  "--schedule_resolution=epoch",
  "--factor_schedule=4:1",
  "--evaluation_steps=1",
  "--upstream_ms=0.1",
  "--implementation=graph",
  "--workers=1",
]


def _compare(*flags):
  return scripts.run("experiments.compare", *flags)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
  """The directory and the output of a comparison that ran to its end."""
  output_dir = tmp_path_factory.mktemp("compare")
  done = _compare(*TINY, f"--output_dir={output_dir}")
  assert done.returncode == 0, done.stderr
  return output_dir, done


def test_a_comparison_leaves_results_figures_and_a_report(finished):
  output_dir, done = finished
  made = {path.name for path in output_dir.iterdir()}
  assert {"results.jsonl", "report.html", "fresh_to_target.png"} <= made
  # Two arms for the target, and timed; for the end, three.
  assert len(records.load(output_dir / "results.jsonl")) == 7
  assert "after_batch e=4" in done.stdout
  # How far it is, and the time left.
  assert re.search(r"7/7 \[\d\d:\d\d<00:00", done.stderr)
  assert "Traceback" not in done.stderr


def test_every_line_says_what_made_it(finished):
  output_dir, _ = finished
  for record in records.load(output_dir / "results.jsonl"):
    assert record["environment"]["tensorflow"]
    assert record["environment"]["cpu"]
    assert record["date"] > "2020"
    curve = record["curve"]
    assert len(curve["consumed"]) == len(curve["metric"]) > 0


@pytest.mark.one_stack
def test_an_interrupted_comparison_does_only_what_is_missing(finished):
  output_dir, _ = finished
  path = output_dir / "results.jsonl"
  whole = path.read_bytes()
  lines = whole.splitlines(keepends=True)
  path.write_bytes(b"".join(lines[:-1]) + lines[-1][:50])
  done = _compare(*TINY, f"--output_dir={output_dir}")
  assert done.returncode == 0, done.stderr
  assert "results.jsonl:7: cut off" in done.stderr
  assert "1 of 7 runs are to be done" in done.stderr
  assert path.read_bytes().startswith(b"".join(lines[:-1]))
  assert len(records.load(path)) == 7


@pytest.mark.one_stack
def test_other_settings_do_not_mix_with_what_is_there(finished):
  output_dir, _ = finished
  before = (output_dir / "results.jsonl").read_bytes()
  done = _compare(*TINY, "--echo_buffer=64", f"--output_dir={output_dir}")
  assert done.returncode == 1
  assert "results.jsonl:1: has echo_buffer=512, this is 64" in done.stderr
  assert (output_dir / "results.jsonl").read_bytes() == before


@pytest.mark.one_stack
@pytest.mark.parametrize(
  "argument, names",
  [
    ("--factors=4,x", ["--factors", "4,x"]),
    ("--seeds=0", ["--seeds", "0"]),
    ("--seeds=1001", ["--seeds", "1001"]),  # 1000 is one to tune with.
    ("--factor_schedule=4", ["--factor_schedule", "FIRST:LAST", "4"]),
    ("--factor_schedule=4:x", ["--factor_schedule", "4,x"]),
    ("--batch_size=7", ["--learning_rates", "batch_size=7"]),
    (
      "--arms=on_stall --implementation=graph",
      ["--implementation", "on_stall", "graph"],
    ),
  ],
)
def test_a_bad_flag_is_refused_in_one_line(tmp_path, argument, names):
  done = _compare(*argument.split(), f"--output_dir={tmp_path}/made")
  assert done.returncode == 1
  (line,) = [s for s in done.stderr.splitlines() if s.startswith("error: ")]
  assert done.stderr.endswith(f"{line}\n") and not done.stdout
  for name in names:
    assert name in line
  assert not (tmp_path / "made").exists()


def test_help_explains_every_flag():
  done = _compare("--help")
  for flag in ("arms", "factors", "seeds", "measure", "upstream_ms", "workers"):
    assert f"--{flag}:" in done.stdout or f"--[no]{flag}:" in done.stdout
  # A default that depends on where the checkout lies explains nothing.
  assert f"default: '{scripts.ROOT}" not in done.stdout
