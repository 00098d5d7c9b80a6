"""Why the native ops can't be used here, as exceptions."""

from __future__ import annotations


class NativeUnavailableError(RuntimeError):
  """The native ops can't be used here; the message says why, and the cure."""


class NeedsBuildError(NativeUnavailableError):
  """No usable library at this place, and building one would help.

  Raised for a library that is missing, damaged or made for something else.
  Not for one that somebody else could have changed: that is a matter for the
  user, and nothing is overwritten.
  """


class CompilationError(NativeUnavailableError):
  """The compiler ran and failed.

  Args:
    summary: what happened, in one line.
    output: the compiler's own words.
  """

  def __init__(self, summary: str, output: str = ""):  # noqa: D107
    super().__init__(f"{summary}:\n{output}" if output else summary)
    self.summary = summary
