"""Which implementation of the transformations the runs will use."""

import dataclasses

import tfecho.native
from experiments import command_line

NAMES = ("auto", "native", "graph")


def resolve(runs):
  """Returns the runs with "auto" replaced by what it stands for here.

  Builds the native ops if they are wanted: once, before there are workers that
  would all do it.

  Args:
    runs: List of `RunSettings`, all with the same implementation.

  Raises:
    ValueError: If "native" is asked for and can't be loaded, or something is
      wanted that "graph" hasn't.
  """
  name = _resolve(runs[0].implementation)
  if name == "graph" and any(run.arm.on_stall for run in runs):
    raise ValueError(f"--arms: on_stall needs native ops, got {name!r}")
  return [dataclasses.replace(run, implementation=name) for run in runs]


def _resolve(name):
  if name == "auto":
    return "graph" if tfecho.native.try_load() is None else "native"
  if name == "native":
    unavailable = tfecho.native.NativeUnavailableError
    with command_line.blaming("implementation=native", unavailable):
      tfecho.native.load()
  return name
