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
    ValueError: As `resolved`.
  """
  name = resolved(runs[0].implementation, [run.arm for run in runs])
  return [dataclasses.replace(run, implementation=name) for run in runs]


def resolved(name, arms):
  """Returns "native" or "graph", for some arms.

  Raises:
    ValueError: If "native" is asked for and can't be loaded, or something is
      wanted that "graph" hasn't.
  """
  unavailable = tfecho.native.NativeUnavailableError
  if name == "auto":
    name = "graph" if tfecho.native.try_load() is None else "native"
  elif name == "native":
    with command_line.blaming("implementation=native", unavailable):
      tfecho.native.load()
  if name == "graph" and any(arm.on_stall for arm in arms):
    raise ValueError(
      f"--implementation: on_stall needs native ops, got {name!r}"
    )
  return name
