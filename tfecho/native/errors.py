"""Why the native ops can't be used here, as exceptions and for logs."""

from __future__ import annotations


def printable(text: object) -> str:
  """Returns `text` as any log can take it, whatever bytes a path in it has."""
  return str(text).encode(errors="backslashreplace").decode()


class NativeUnavailableError(RuntimeError):
  """The native ops can't be used here; the message says why, and the cure."""


class NeedsBuildError(NativeUnavailableError):
  """No usable library at this place, and building one would help.

  Raised for a library that is missing, damaged or made for something else.
  Not for one that somebody else could have changed: that is a matter for the
  user, and nothing is overwritten.
  """


class CompilationError(NativeUnavailableError):
  """The compiler failed: `CompilationError(summary, its_own_words)`."""

  @property
  def summary(self) -> str:
    """The message without the compiler's own words."""
    return str(self.args[0])

  def __str__(self) -> str:
    """Returns the summary and, if there are any, the compiler's words."""
    return ":\n".join(part for part in self.args if part)
