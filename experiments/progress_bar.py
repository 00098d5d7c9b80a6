"""A bar that shows how far a long job is, and how much time is left."""

import sys

import tqdm


def bar(total, *, unit, done=0):
  """Returns a bar on stderr, with the methods of `tqdm.tqdm`.

  Args:
    total: How much there is to do.
    unit: What it is counted in.
    done: How much of it was done before, by another process.
  """
  # Into a file, a line now and then will do.
  interval = 0.5 if sys.stderr.isatty() else 30
  return tqdm.tqdm(
    total=total,
    unit=unit,
    initial=done,
    mininterval=interval,
    miniters=0,
    dynamic_ncols=True,
  )
