"""The file of finished runs: JSON lines, one run a line.

```python
with records.RecordFile(path) as file:
  records.check_compatible(file, planned, environment)
  file.append(records.make(settings, environment, result))
```

A line is written in one piece and only once its run is over, so an interrupted
comparison keeps what it has. A last line that was cut off is reported and taken
away; any other line that does not parse stops with its number, because nobody
can say what else is wrong with the file. JSON has no infinity: a metric that is
infinitely bad, of a training that diverged, is `null` in the file.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import pathlib

from absl import logging

try:
  import fcntl
except ImportError:  # Windows: there, nobody keeps a second process away
  fcntl = None

from experiments.environment import revision
from experiments.settings import RunSettings

FORMAT = 1

# What may differ between the runs of one comparison; all else must be equal.
VARYING = (
  "arm",
  "seed",
  "upstream_ms",
  "upstream_jitter",
  "store",
  "store_ms",
  "store_kb_per_second",
  "schedule_resolution",
)
# And what else between measures, which end and are judged in ways of their own.
_OF_A_MEASURE = (
  "measure",
  "learning_rate",
  "targets",
  "max_steps",
  "evaluation_steps",
)
_FIELDS = ("format", "date", "environment", "settings")
_RESULTS = ("metric", "counts", "curve")

# The columns of a curve, a value for each evaluation; what that took is in the
# seconds. The last values are among the counts.
COLUMNS = ("step", "read", "consumed", "trained", "seconds", "metric")
_COUNTS = (*COLUMNS, "emitted", "distinct_share", "wait_seconds")


def make(settings, environment, result):
  """Returns the record of a finished run, ready for JSON."""
  now = datetime.datetime.now(datetime.timezone.utc)
  return {
    "format": FORMAT,
    "date": now.isoformat(timespec="seconds"),
    "environment": environment,
    "revision": revision(),
    "settings": settings.to_dict(),
    **result,
  }


def settings_of(record):
  """Returns the `RunSettings` of a record."""
  return RunSettings.from_dict(record["settings"])


def load(path):
  """Returns the records in a file, for reading only.

  Raises:
    ValueError: If a line, the last one included, is no record; the message
      names file and line.
  """
  text = pathlib.Path(path).read_bytes()
  return [
    _parse(line, path, number)
    for number, line in enumerate(text.splitlines(), 1)
  ]


class RecordFile:
  """A file of records that is open to be continued, by one process at a time.

  ```python
  with RecordFile(path) as file:
    file.append(record)
  ```

  Attributes:
    path: Where it is.
    records: Those that were in it, and those appended.
  """

  def __init__(self, path):
    """Opens the file, or makes it with the folders above it.

    Args:
      path: Where the file is.

    Raises:
      OSError: If it can't be opened for writing.
      ValueError: If a line before the last is no record, or another process is
        writing to the file.
    """
    self.path = pathlib.Path(path)
    self.path.parent.mkdir(parents=True, exist_ok=True)
    self._stream = open(self.path, "a+b")
    try:
      self._lock()
      self._mend()
      self.records = load(self.path)
    except BaseException:
      self._stream.close()
      raise

  def __enter__(self):
    return self

  def __exit__(self, *exception):
    self._stream.close()

  def append(self, record):
    """Adds a record; once this returns, it is on the disk."""
    line = json.dumps(_with_nulls(record), allow_nan=False) + "\n"
    self._stream.write(line.encode())
    self._stream.flush()
    os.fsync(self._stream.fileno())
    self.records.append(record)

  def _lock(self):
    if fcntl is None:
      return
    try:
      fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
      raise ValueError(
        f"{self.path}: another process is writing to it"
      ) from None

  def _mend(self):
    """Takes away a last line that was cut off while it was written."""
    self._stream.seek(0)
    text = self._stream.read()
    complete = text.rfind(b"\n") + 1
    if complete < len(text):
      line = text.count(b"\n") + 1
      logging.warning("%s:%d: cut off, its run is done again", self.path, line)
      self._stream.truncate(complete)


def check_compatible(file, planned, environment, *, varying=VARYING):
  """Refuses to put runs together that do not compare.

  Args:
    file: A `RecordFile`.
    planned: `RunSettings` of the runs to be added.
    environment: What they would run on.
    varying: Settings that may differ between runs of one measure. Between
      measures, those may that are a matter of the measure.

  Raises:
    ValueError: If a record differs from what is planned in its environment, in
      a setting that must be the same for all runs, or in the learning rate of
      the same arm. The message names file, line and field.
  """
  # The seeds of an arm differ in nothing that matters here.
  planned = {(run.measure, run.arm): run for run in planned}.values()
  for number, record in enumerate(file.records, 1):
    where = f"{file.path}:{number}"
    _check_equal(record["environment"], environment, f"{where}: made under")
    for settings in planned:
      _check_settings(settings_of(record), settings, varying, where)


def missing(records, planned):
  """Returns those planned runs that have no record yet, in their order."""
  finished = {settings_of(record) for record in records}
  return [settings for settings in planned if settings not in finished]


def _check_settings(recorded, planned, varying, where):
  varying = set(varying)
  if recorded.measure != planned.measure:
    varying.update(_OF_A_MEASURE)
  if recorded.arm != planned.arm:
    varying.add("learning_rate")  # each has the one that suits it
  _check_equal(
    _without(recorded.to_dict(), varying),
    _without(planned.to_dict(), varying),
    f"{where}: has",
  )


def _check_equal(recorded, planned, where):
  for name, value in planned.items():
    if recorded.get(name) != value:
      raise ValueError(
        f"{where} {name}={recorded.get(name)!r}, this is {value!r}: such runs "
        "do not compare, choose another --output_dir"
      )


def _without(fields, names):
  return {name: v for name, v in fields.items() if name not in names}


def _parse(line, path, number):
  """Returns the record in a line, with all that the readers rely on."""
  try:
    record = json.loads(line)
    if record["format"] != FORMAT:
      raise ValueError(f"has format {record['format']!r}, not {FORMAT}")
    for name in _FIELDS + _RESULTS:
      record[name]
    settings_of(record)
    record = _without_nulls(record)
    _check_numbers(record["counts"], record["curve"])
    return record
  except (ValueError, TypeError, KeyError) as error:
    raise ValueError(
      f"{path}:{number}: not the record of a run: {error!r}"
    ) from error


def _check_numbers(counts, curve):
  """Refuses what a figure would stumble over later, with no line to name."""
  columns = [curve[name] for name in COLUMNS]
  if len(set(map(len, columns))) > 1:
    raise ValueError("its curve has columns of several lengths")
  found = [counts[name] for name in _COUNTS] + sum(columns, [])
  for value in found:
    if not isinstance(value, (int, float)):
      raise ValueError(f"has {value!r} where a number belongs")


def _with_nulls(record):
  return _with_metrics(record, lambda x: None if math.isinf(x) else x)


def _without_nulls(record):
  return _with_metrics(record, lambda x: math.inf if x is None else x)


def _with_metrics(record, change):
  """Returns a record with every metric changed that may be infinite."""
  counts, curve = record["counts"], record["curve"]
  return {
    **record,
    "counts": {**counts, "metric": change(counts["metric"])},
    "curve": {**curve, "metric": [change(x) for x in curve["metric"]]},
  }
