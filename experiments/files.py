"""Files that are there as a whole or not at all."""

import os
import pathlib


def write_whole(path, text):
  """Writes a file, or what takes its place.

  Whoever reads it, also after this was killed, finds all of one or the other.

  Args:
    path: Of the file; its directory exists.
    text: What goes into it.
  """
  path = pathlib.Path(path)
  unfinished = path.with_name(f"{path.name}.{os.getpid()}")
  unfinished.write_text(text, encoding="utf-8")
  unfinished.replace(path)
