"""Does what is still to be done of a list of runs, and keeps every result."""

from absl import logging

from experiments import records, summary, workers
from experiments.environment import environment


def finish(file, planned, *, processes):
  """Does the planned runs that have no record yet.

  Args:
    file: An open `RecordFile`; a record is added for each run, once it is over.
    planned: List of `RunSettings`.
    processes: How many runs to do side by side.
  """
  missing = records.missing(file.records, planned)
  logging.info(
    "%s: %d of %d runs are to be done", file.path, len(missing), len(planned)
  )
  made_under = environment()

  def keep(settings, result):
    record = records.make(settings, made_under, result)
    file.append(record)
    return summary.line(record)

  workers.run_all(missing, workers=processes, on_result=keep)
