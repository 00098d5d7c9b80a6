import html.parser
import math
import re

import pytest

from experiments import figures, report, report_tables
from experiments.benchmark import stall
from experiments.figures import stall as stall_figure


@pytest.fixture
def finished(make_record):
  return [
    *(make_record(seed=seed, consumed=800 + seed) for seed in range(3)),
    *(
      make_record("after_decode", factor, seed=seed, consumed=900 // factor)
      for seed in range(3)
      for factor in (2, 4)
    ),
    make_record("after_batch", 4, consumed=500, metric=0.6),
    make_record(measure="final", consumed=800),
    make_record("after_batch", 4, measure="final", consumed=200),
    make_record(upstream_ms=2.0),
    make_record("after_decode", 4, upstream_ms=2.0, consumed=200),
    make_record("on_stall", upstream_ms=2.0, metric=0.6),
    make_record("on_stall", upstream_ms=2.0, upstream_jitter=0.5),
  ]


class _Page(html.parser.HTMLParser):
  """Collects what a page refers to, and the text of its table cells."""

  def __init__(self, text):
    super().__init__()
    self.links, self.cells = [], []
    self._in_cell = False
    self.feed(text)

  def handle_starttag(self, tag, attrs):
    self._in_cell = tag in ("td", "th")
    self.links += [v for k, v in attrs if k in ("src", "href")]
    assert tag not in ("script", "link", "iframe")

  def handle_data(self, data):
    if self._in_cell:
      self.cells.append(data)
      self._in_cell = False


def test_the_page_refers_to_nothing_outside(finished, tmp_path):
  report.write(finished, tmp_path)
  text = (tmp_path / "report.html").read_text()
  page = _Page(text)
  drawn = list(tmp_path.glob("*.png"))
  assert len(page.links) == len(drawn) == len(figures.draw(finished)) > 5
  assert all(link.startswith("data:image/png;base64,") for link in page.links)
  assert not re.search(r"https?:|@import|url\(", text)


def test_both_say_what_was_trained_on_what(finished, tmp_path):
  printed = report.write(finished, tmp_path)
  for text in (printed, (tmp_path / "report.html").read_text()):
    assert "scikit-learn" in text


def test_the_page_shows_what_the_tables_print(finished, tmp_path):
  printed = report.write(finished, tmp_path)
  cells = _Page((tmp_path / "report.html").read_text()).cells
  for table in report_tables.tables(finished):
    for row in table.rows:
      for text in row:
        assert text in printed
        assert text in cells


def test_the_table_shows_the_spread_and_what_was_not_reached(finished):
  first, *_ = report_tables.tables(finished)
  rows = {row[0]: row for row in first.rows}
  assert rows["baseline"][2] == "801 (800-802)"
  assert rows["after_batch e=4"][1:3] == ("0/1 (best 0.6)", "not reached")
  assert "M = 16 fresh examples" in str(first)


def test_without_a_delay_the_report_says_how_long_training_waited(finished):
  shown = report_tables.tables(finished)
  (table,) = [t for t in shown if "no delay" in t.title]
  rows = {row[0]: row for row in table.rows}
  # The records wait for half a second out of two.
  assert rows["baseline"][2:4] == ("25%", "1.3")
  assert rows["after_batch e=4"][4] == "not reached"


def test_the_report_says_how_the_rate_of_each_arm_was_found(finished, tmp_path):
  tuned = {
    "workload": "resnet32_cifar10",
    "preset": "small",
    "batch_size": 8,
    "measure": "target",
    "kind": "after_decode",
    "factor": 4,
    "learning_rate": 0.002,
    "trials": {"0.002": 12345, "0.004": None},
  }
  report.write(finished, tmp_path, rates=[tuned])
  cells = _Page((tmp_path / "report.html").read_text()).cells
  assert "0.002: 12,345; 0.004: diverged" in cells
  later = {**tuned, "learning_rate": 0.004}  # Tuned again since these runs.
  table = report_tables.learning_rates(finished, [later])
  assert ("after_decode e=4", "target", "0.002", "-") in table.rows


def test_the_report_says_whose_rate_an_arm_has_that_was_not_tuned(make_record):
  trials = {"0.002": 800, "0.004": 900}
  tuned = {
    **{"workload": "resnet32_cifar10", "preset": "small", "batch_size": 8},
    **{"measure": "target", "kind": "after_decode", "factor": 4.0},
    **{"learning_rate": 0.002, "trials": trials},
  }
  runs = [make_record("after_decode", factor) for factor in (4, 8)]
  own, borrowed = report_tables.learning_rates(runs, [tuned]).rows
  assert own[-1] == "0.002: 800; 0.004: 900"
  assert borrowed[-1] == "as after_decode e=4: 0.002: 800; 0.004: 900"


def test_only_what_was_measured_is_shown(make_record, tmp_path):
  (table,) = report_tables.tables([make_record(measure="final")])
  assert "cosine" in table.title
  assert list(figures.draw([make_record(measure="final")])) == ["final"]


def test_time_alone_is_shown_with_its_upstream(make_record, tmp_path):
  finished = [make_record("on_stall", upstream_ms=2.0, upstream_jitter=0.5)]
  printed = report.write(finished, tmp_path)
  assert "on_stall e<=8" in printed
  assert "2.00, jitter 0.5" in printed
  assert list(figures.draw(finished)) == ["wall_time"]


def test_the_stall_suite_makes_a_figure_of_all_its_ratios():
  cases = [
    case
    for case in stall.cases()
    if case.what.startswith("example level, ") and "upstream" in case.what
  ]
  rows = [
    {
      "what": case.what,
      "bound": {"ours": bound.ours, "other": bound.other},
      "ours": [1.0, 3.0, 2.0],
      "other": [4.0, 4.0, 4.0],
    }
    for case in cases
    for bound in case.bounds
  ]
  drawn = stall_figure.draw({"rows": rows})
  lines = [line for axes in drawn.axes for line in axes.lines]
  assert len(lines) == 7
  for line in lines:
    assert tuple(line.get_xdata()) == stall.RATIOS
    assert set(line.get_ydata()) <= {2.0, 4.0}


def test_runs_of_which_none_arrived_make_a_report(make_record, tmp_path):
  missed = [make_record("after_decode", n, metric=0.1) for n in (2, 4, 8)]
  slow = make_record(metric=0.1, upstream_ms=2.0)
  report.write([make_record(metric=0.1), *missed, slow], tmp_path)
  assert (tmp_path / "fresh_to_target.png").exists()
  assert "not reached" in (tmp_path / "report.html").read_text()


def test_a_run_that_diverged_is_in_the_report(make_record, tmp_path):
  for settings in ({"measure": "final"}, {}):
    finished = [
      make_record(seed=seed, metric=metric, targets=(5.0, 4.0), **settings)
      for seed, metric in enumerate([4.5, 4.2, math.inf])
    ]
    for run in finished:
      run["metric"]["maximize"] = False
    printed = report.write(finished, tmp_path)
    if settings:
      assert "4.5000 (4.2000-diverged)" in printed
      (axes,) = figures.draw(finished)["final"].axes
      (label,) = [text.get_text() for text in axes.get_yticklabels()]
      assert label == "baseline, 800 fresh (1 diverged)"


def test_runs_too_short_for_a_curve_make_a_report(make_record, tmp_path):
  run = make_record()
  for values in run["curve"].values():
    del values[1:]
  report.write([run], tmp_path)
  assert not (tmp_path / "curves.png").exists()


@pytest.mark.one_stack
def test_the_same_runs_give_the_same_files(finished, tmp_path):
  for name in ("one", "two"):
    (tmp_path / name).mkdir()
    report.write(finished, tmp_path / name)
  for path in (tmp_path / "one").iterdir():
    assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()
