"""Starts a script: flags parsed, mistakes in them told in one line."""

import contextlib
import signal
import sys

from absl import app, flags, logging


def run(main, *, goes_on=lambda: False):
  """Runs `main` as `absl.app.run` does, without arguments.

  Args:
    main: Called without arguments once the flags are parsed. What it has
      finished must survive an interrupt.
    goes_on: Called if it is interrupted: whether the same command then goes on
      where it was.
  """
  # Like Ctrl-C: leaves through `finally`, so that no worker stays behind.
  signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))

  def interruptible(argv):
    try:
      main()
    except KeyboardInterrupt:
      how = ": the same command goes on from here" if goes_on() else ""
      print(f"interrupted{how}", file=sys.stderr)
      sys.exit(128 + signal.SIGINT)

  app.run(interruptible, flags_parser=_parse)


@contextlib.contextmanager
def refusing_in_one_line():
  """Turns a ValueError inside into one line on stderr and exit status 1.

  For what a person asked for, before the work starts; an error in the work
  itself has to show where it came from.
  """
  try:
    yield
  except ValueError as error:
    sys.exit(f"error: {error}")


@contextlib.contextmanager
def blaming(flag, mistake=ValueError):
  """Puts the name of a flag in front of what is wrong with its value.

  Args:
    flag: Its name, which may end in "=" and the value.
    mistake: Class of what may be raised inside, or a tuple of them.

  Raises:
    ValueError: In place of such an error.
  """
  try:
    yield
  except mistake as error:
    raise ValueError(f"--{flag}: {error}") from error


def numbers(flag, values):
  """Returns the values of a flag as floats.

  Raises:
    ValueError: If one of them is no number.
  """
  try:
    return tuple(float(value) for value in values)
  except ValueError:
    raise ValueError(
      f"--{flag}: must be numbers, got {','.join(values)}"
    ) from None


def _parse(argv):
  try:
    arguments = flags.FLAGS(argv)
  except flags.Error as error:
    sys.exit(f"error: {error}")
  if len(arguments) > 1:
    sys.exit(f"error: takes flags only, got {arguments[1]!r}")
  logging.set_verbosity(logging.INFO)
  return arguments
