"""What a comparison found, as a text table and as a page of its own.

```python
print(write(finished, output_dir))  # also makes report.html and the figures
```
"""

from __future__ import annotations

import base64
import io
import pathlib

import jinja2

from experiments import figures, report_tables, summary

_TEMPLATES = pathlib.Path(__file__).with_name("templates")


def write(finished, output_dir, *, rates=()):
  """Writes figures and `report.html`; returns the tables as text.

  Args:
    finished: List of records, of runs that compare.
    output_dir: Path of a directory that exists.
    rates: Entries as `learning_rates.load` returns them.

  Returns:
    The tables of the report, ready to print.
  """
  drawn = figures.draw(finished)
  figures.save(drawn, output_dir)
  shown = report_tables.tables(finished)
  shown.append(report_tables.learning_rates(finished, rates))
  page = html(shown, drawn, finished)
  pathlib.Path(output_dir, "report.html").write_text(page, encoding="utf-8")
  trained = ", ".join(summary.descriptions(finished))
  return "\n\n".join([trained, *map(str, shown)])


def html(shown, drawn, finished):
  """Returns a page that needs no other file: figures are part of it."""
  environment = jinja2.Environment(
    loader=jinja2.FileSystemLoader(_TEMPLATES),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
  )
  return environment.get_template("report.html").render(
    tables=shown,
    figures={name: _embedded(figure) for name, figure in drawn.items()},
    settings=_common_settings(finished),
    environment=finished[0]["environment"],
    runs=len(finished),
    workloads=", ".join(summary.descriptions(finished)),
  )


def _embedded(figure):
  stream = io.BytesIO()
  figure.savefig(
    stream, format="png", dpi=figures.DPI, metadata={"Software": None}
  )
  return base64.b64encode(stream.getvalue()).decode()


def _common_settings(finished):
  """Settings in which all runs agree, by name."""
  first, *others = [run["settings"] for run in finished]
  return {
    name: value
    for name, value in first.items()
    if all(other.get(name) == value for other in others)
  }
