"""The command line of the advice, on a workload that is measured briefly."""

import json

import keras
import pytest
import scripts
from absl import flags
from absl.testing import flagsaver

from experiments import advise, workloads


def run(*flags):
  return scripts.run("experiments.advise", *flags)


@pytest.mark.parametrize(
  "step",
  [
    pytest.param(
      ["--precision=mixed_bfloat16", "--optimizer=lamb"],
      marks=pytest.mark.one_stack,
      id="own",
    ),
    pytest.param(["--step_ms=1"], id="given"),
  ],
)
def test_prints_a_table_and_writes_json(tmp_path, step):
  output = tmp_path / "new" / "advice.json"
  result = run(
    *step,
    "--seconds=0.1",
    "--upstream_ms=0.1",
    "--batch_size=4",
    "--max_factor=3",
    f"--output={output}",
  )
  assert result.returncode == 0, result.stderr
  assert "train step" in result.stdout
  assert "Recommended" in result.stdout
  record = json.loads(output.read_text())
  assert set(record["ratios"]) == {"read", "decode", "augment", "batch"}
  assert record["measured"]["examples"] == 1297
  assert record["measured"]["batch_size"] == 4
  assert max(choice["factor"] for choice in record["choices"]) == 3


@pytest.mark.one_stack
def test_the_step_that_is_timed_is_that_of_a_training_with_these_flags():
  with flagsaver.flagsaver():
    flags.FLAGS(["advise", "--precision=mixed_bfloat16", "--optimizer=sgd"])
    workload = workloads.get("resnet32_cifar10", "small")
    model = advise.model_of(workload)
  assert model.dtype_policy.name == "mixed_bfloat16"
  assert isinstance(model.optimizer, keras.optimizers.SGD)


def test_help_names_every_flag_with_its_unit():
  text = run("--help").stdout
  for flag in ("workload", "preset", "batch_size", "max_factor", "output"):
    assert f"--{flag}" in text
  for flag in ("upstream_ms", "step_ms"):
    assert "in milliseconds" in text.partition(f"--{flag}:")[2][:200]
  assert "in seconds" in text.partition("--seconds:")[2][:200]


# a bad flag, what the error names
@pytest.mark.one_stack
@pytest.mark.parametrize(
  ("flag", "named"),
  [
    ("--workload=tea", "tea"),
    ("--batch_size=0", "batch_size"),
    ("--step_ms=0", "step_seconds"),
    ("--strategy=mirrored", "--step_ms"),
    ("--max_factor=1", "max_factor"),
  ],
)
def test_a_bad_value_is_refused_in_one_line(flag, named):
  result = run(flag)
  assert result.returncode == 1
  errors = [x for x in result.stderr.splitlines() if x.startswith("error:")]
  assert len(errors) == 1 and named in errors[0]
