import dataclasses

import pytest
from plans import REQUEST

from experiments import planning, workloads
from experiments.arms import Arm


@pytest.fixture
def without_augmentation(monkeypatch):
  """Makes the workload one that is not augmented."""
  plain = dataclasses.replace(
    workloads.get("resnet32_cifar10", "small"), augment=None
  )
  monkeypatch.setattr(workloads, "get", lambda name, preset, **_: plain)


def _plan(**changed):
  request = dataclasses.replace(REQUEST, **changed)
  return planning.plan(request, lambda arm, **common: 0.001 * arm.factor)


def test_every_arm_runs_under_every_seed_and_measure():
  runs = _plan(measure=("target", "final"))
  arms = ["baseline"] + [
    f"{kind} e={factor}"
    for kind in ("after_decode", "after_batch")
    for factor in (2, 4)
  ]
  assert sorted((str(r.arm), r.seed, r.measure) for r in runs) == sorted(
    (arm, seed, measure)
    for arm in arms
    for seed in range(3)
    for measure in ("target", "final")
  )


def test_the_workload_says_what_the_request_leaves_open():
  run = _plan()[0]
  assert (run.batch_size, run.targets[-1]) == (32, 0.99)
  assert _plan(batch_size=64, targets=(0.8,))[0].batch_size == 64


def test_the_steps_are_those_of_the_measure():
  runs = _plan(measure=("target", "final"), max_steps=7)
  assert {(r.measure, r.max_steps) for r in runs} == {
    ("target", 7),
    ("final", 100),
  }


def test_each_arm_has_the_learning_rate_that_was_found_for_it():
  assert {(r.arm.factor, r.learning_rate) for r in _plan()} == {
    (1, 0.001),
    (2.0, 0.002),
    (4.0, 0.004),
  }


def test_the_baseline_and_the_first_echo_are_timed_under_one_seed():
  slow = [run for run in _plan(upstream_ms=2) if run.upstream_ms]
  assert [(r.arm, r.seed, r.measure) for r in slow] == [
    (Arm(), 0, "target"),
    (Arm("decode", 2.0, True), 0, "target"),
    (Arm("decode", 4.0, True), 0, "target"),
  ]
  assert _plan(upstream_ms=2)[: len(slow)] == slow  # they take longest


def test_an_echo_on_stall_is_timed_beside_the_first_echo_and_nothing_else():
  runs = _plan(arms=("after_decode", "on_stall"), upstream_ms=2)
  on_stall = [run for run in runs if run.arm.on_stall]
  assert [(r.upstream_ms, r.seed) for r in on_stall] == [(2, 0)]
  assert {str(run.arm) for run in runs if run.upstream_ms} == {
    "baseline",
    "after_decode e=2",
    "after_decode e=4",
    "on_stall e<=8",
  }


def test_to_measure_time_is_to_time_every_arm_and_seed_and_no_more():
  runs = _plan(measure=("time",), upstream_ms=2, upstream_jitter=0.5)
  arms = {str(run.arm) for run in _plan()}
  assert {(str(r.arm), r.seed) for r in runs} == {
    (arm, seed) for arm in arms for seed in range(3)
  }
  assert len(runs) == 3 * len(arms)
  assert {(r.measure, r.upstream_ms, r.upstream_jitter) for r in runs} == {
    ("target", 2, 0.5)
  }


@pytest.mark.parametrize(
  "changed, named",
  [
    ({"measure": ("time",)}, "--upstream_ms: must be above 0 for --measure="),
    ({"arms": ("on_stall",)}, "--upstream_ms: must be above 0 for --arms="),
    ({"upstream_jitter": 0.5}, "--upstream_ms: must be above 0 for --upstr"),
    (
      {"arms": ("on_stall",), "measure": ("final",), "upstream_ms": 2},
      "--measure: must name target or time for --arms=on_stall, got final",
    ),
  ],
)
def test_what_needs_a_slow_upstream_is_refused_without(changed, named):
  with pytest.raises(ValueError, match=named):
    _plan(**changed)


@pytest.mark.parametrize(
  "changed",
  [{"upstream_ms": 0}, {"measure": ("final",)}, {"arms": ("baseline",)}],
)
def test_nothing_is_timed_without_a_delay_a_target_or_an_echo(changed):
  request = {"upstream_ms": 2, **changed}
  assert not [run for run in _plan(**request) if run.upstream_ms]


def test_schedules_vary_where_the_final_metric_is_measured():
  runs = _plan(
    measure=("target", "final"),
    schedule_resolution=("step", "epoch"),
    factor_schedules=((4.0, 1.0),),
    seeds=(0,),
  )
  constant = [
    "baseline",
    "after_decode e=2",
    "after_decode e=4",
    "after_batch e=2",
    "after_batch e=4",
  ]
  falling = ["after_decode e=4:1", "after_batch e=4:1"]
  assert [(r.measure, r.schedule_resolution, str(r.arm)) for r in runs] == [
    *(("target", "step", arm) for arm in constant),
    *(("final", "step", arm) for arm in constant + falling),
    *(("final", "epoch", arm) for arm in constant + falling),
  ]
  rates = {str(r.arm): r.learning_rate for r in runs}
  assert rates["after_decode e=4:1"] == rates["after_decode e=4"]


@pytest.mark.parametrize(
  "changed",
  [{"schedule_resolution": ("epoch",)}, {"factor_schedules": ((4.0, 1.0),)}],
)
def test_schedules_need_a_final_metric(changed):
  with pytest.raises(ValueError, match="--measure: must name final for --"):
    _plan(**changed)


@pytest.mark.parametrize(
  # flag, bad value as it is named in the message
  "field, value, named",
  [
    ("workload", "mnist", "'mnist'"),
    ("preset", "huge", "'huge'"),
    ("arms", ("before_decode",), "'before_decode'"),
    ("arms", (), "none"),
    ("arms", ("baseline", "baseline"), "baseline, baseline"),
    ("factors", (0.5,), "0.5"),
    ("factors", (float("nan"),), "nan"),
    ("factors", (float("inf"),), "inf"),
    ("factors", (), "none"),
    ("measure", ("speed",), "'speed'"),
    ("targets", (1.5,), "1.5"),
    ("targets", (0.0,), "0.0"),
    ("targets", (float("nan"),), "nan"),
    ("targets", (0.9, 0.8), "0.9, 0.8"),
    ("max_steps", 0, "0"),
    ("final_steps", -1, "-1"),
    ("evaluation_steps", 0, "0"),
    ("batch_size", 0, "0"),
    ("echo_buffer", 63, "63"),
    ("upstream_ms", -0.1, "-0.1"),
    ("upstream_ms", float("nan"), "nan"),
    ("upstream_ms", float("inf"), "inf"),
    ("schedule_resolution", ("batch",), "'batch'"),
    ("schedule_resolution", (), "none"),
    ("upstream_jitter", -0.1, "-0.1"),
    ("upstream_jitter", float("nan"), "nan"),
  ],
)
def test_a_bad_value_is_refused_with_its_flag(field, value, named):
  with pytest.raises(ValueError) as error:
    _plan(**{field: value})
  message = str(error.value)
  assert message.startswith(f"--{field}: ")
  assert message.endswith(f"got {named}")
  assert "\n" not in message


@pytest.mark.parametrize("first, last", [(4.0, 5.0), (4.0, 0.5), (0.5, 0.1)])
def test_a_factor_schedule_that_does_not_fall_is_refused(first, last):
  with pytest.raises(ValueError, match="^--factor_schedule: must "):
    _plan(measure=("final",), factor_schedules=((first, last),))


def test_without_names_the_places_of_the_paper_are_compared():
  kinds = {run.arm.kind for run in _plan(arms=None)}
  assert kinds == {"baseline", "after_decode", "after_augment", "after_batch"}


def test_what_is_not_augmented_has_no_echo_after_that(without_augmentation):
  kinds = {run.arm.kind for run in _plan(arms=None)}
  assert kinds == {"baseline", "after_decode", "after_batch"}
  with pytest.raises(ValueError, match="--arms: .* not augmented.*after_augm"):
    _plan(arms=("baseline", "after_augment"))


def test_what_is_not_augmented_takes_no_augmentation(
  without_augmentation,
):
  with pytest.raises(ValueError, match="--augmentation: .*is for images"):
    _plan(augmentation="rand")


def test_all_runs_have_the_same_augmentation():
  assert {run.augmentation for run in _plan(augmentation="rand")} == {"rand"}
  with pytest.raises(ValueError, match="--augmentation: .*got 'blur'"):
    _plan(augmentation="blur")
