"""Where a training ends, and what is kept of it."""

import math

import numpy as np
import pytest

from tfecho.training.callbacks.course import Course


def make_course(total_steps=100, first_step=0, **options):
  return Course(**{
    "total_steps": total_steps,
    "first_step": first_step,
    "fresh_examples": lambda steps: 4 * steps,
    **options,
  })


@pytest.mark.parametrize(
  "first_step, epochs", [(0, [5, 10, 12]), (6, [11, 12]), (11, [12])]
)
def test_a_training_ends_in_mid_epoch(compiled, examples, first_step, epochs):
  course = make_course(12, first_step)
  compiled().fit(
    examples(5).batch(1).repeat(),
    steps_per_epoch=5,
    epochs=9,
    verbose=0,
    callbacks=[course],
  )
  assert [row["steps"] for row in course.rows] == epochs
  assert course.total_steps_made == 12


def test_every_epoch_leaves_a_row(run_epochs, clock):
  course = make_course(clock=clock)

  def a_step_takes_two_seconds():
    clock.now += 2

  logs = [
    {"loss": 0.5},
    {"loss": np.float32(0.25), "f1": np.ones(2), "fresh_consumed": 33},
  ]
  run_epochs(course, logs, steps=5, on_batch=a_step_takes_two_seconds)
  first = {"epoch": 0, "steps": 5, "fresh_examples": 20, "seconds": 10.0}
  second = {"epoch": 1, "steps": 10, "fresh_examples": 33, "seconds": 20.0}
  assert course.rows == [
    {**first, "loss": 0.5},
    {**second, "loss": 0.25, "f1": [1.0, 1.0], "fresh_consumed": 33},
  ]


@pytest.mark.parametrize(
  # Of epochs of 5 steps.
  "first_step, logs, known, unknown",
  [
    (0, {}, [20, 40], [None, None]),
    (0, {"fresh_consumed": math.nan}, [20, 40], [None, None]),
    (0, {"fresh_consumed": 33}, [33, 33], [33, 33]),
    # What was before is not counted.
    (6, {}, [44, 64], [None, None]),
    (6, {"fresh_consumed": 33}, [57, 57], [None, None]),
    (6, {"fresh_consumed": 0}, [24, 24], [None, None]),
  ],
)
def test_fresh_examples_are_those_before_a_resumed_training_too(
  run_epochs, first_step, logs, known, unknown
):
  for found, estimate in [(known, lambda n: 4 * n), (unknown, lambda n: None)]:
    course = make_course(first_step=first_step, fresh_examples=estimate)
    run_epochs(course, [logs, logs], steps=5)
    assert [row["fresh_examples"] for row in course.rows] == found


def test_validation_takes_no_time(compiled, examples, clock, time_passes):
  course = make_course(clock=clock)
  data = examples(5).batch(1)
  compiled().fit(
    data,
    validation_data=data,
    epochs=2,
    verbose=0,
    callbacks=[time_passes, course],
  )
  assert [row["seconds"] for row in course.rows] == [5, 10]
