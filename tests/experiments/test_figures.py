"""What is drawn, read off the artists: no pixels."""

import pathlib

import pytest
import scripts

from experiments import comparisons, curves, figures, records, summary
from experiments.figures import best_values, drawing, targets

ROOT = pathlib.Path(__file__).parents[2]
RESULTS = sorted((ROOT / "experiments" / "results").glob("*.jsonl"))


def _seeds(axes):
  """The points of runs that arrived, per artist."""
  return [
    list(zip(line.get_xdata(), line.get_ydata()))
    for line in axes.lines
    if line.get_alpha() is not None and line.get_marker() == "o"
  ]


def _missed(axes):
  return [
    point
    for line in axes.lines
    if line.get_gid() == drawing.MISSED
    for point in zip(line.get_xdata(), line.get_ydata())
  ]


def _labelled(axes):
  """The lines that the legend names."""
  return {
    line.get_label(): list(zip(line.get_xdata(), line.get_ydata()))
    for line in axes.lines
    if not line.get_label().startswith("_")
  }


def _bars(axes):
  """The intervals."""
  return [
    [tuple(line.get_xdata()), tuple(line.get_ydata())]
    for line in axes.lines
    if line.get_linewidth() in (0.8, 1) and line.get_marker() == "None"
  ]


def _runs(make_record, kind, consumed, *, factor=4, **changed):
  return [
    make_record(kind, factor, seed=seed, consumed=value, **changed)
    for seed, value in enumerate(consumed)
  ]


def _with_curve(record, metric, *, consumed=None):
  """The record with these evaluations, 100 fresh examples from each to next."""
  consumed = consumed or [100 * (i + 1) for i in range(len(metric))]
  step = [10 * (i + 1) for i in range(len(metric))]
  other = {
    name: len(metric) * values[:1] for name, values in record["curve"].items()
  }
  curve = {**other, "metric": metric, "consumed": consumed, "step": step}
  counts = {**record["counts"], "consumed": consumed[-1], "step": step[-1]}
  return {**record, "curve": curve, "counts": counts}


def test_a_row_shows_every_seed_the_median_and_the_interval(make_record):
  values = [400, 100, 700, 200, 600, 300, 500]
  drawn = figures.draw(_runs(make_record, "baseline", values))
  (axes,) = drawn["fresh_to_target"].axes
  assert _seeds(axes) == [[(value, 0) for value in values]]
  assert _bars(axes) == [[(200, 600), (0, 0)]]  # as in test_intervals.py
  (median,) = [line for line in axes.lines if line.get_marker() == "|"]
  assert list(median.get_xdata()) == [400]


def test_a_run_that_missed_stands_where_it_ended_as_a_hollow_triangle(
  make_record,
):
  finished = [
    *_runs(make_record, "baseline", [800, 900]),
    make_record(seed=2, consumed=1000, metric=0.6),
  ]
  (axes,) = figures.draw(finished)["fresh_to_target"].axes
  assert _missed(axes) == [(1000, 0)]
  assert _bars(axes) == [[(800, 1000), (0, 0)]]  # cut where that run ended
  (label,) = [text.get_text() for text in axes.get_yticklabels()]
  assert label == "baseline (1 missed it)"
  texts = [text.get_text() for text in axes.get_legend().get_texts()]
  assert drawing.MISSED in texts


def test_a_figure_tells_that_its_runs_were_made_by_several_revisions(
  make_record,
):
  finished = _runs(make_record, "baseline", [800, 900])
  finished[0]["revision"], finished[1]["revision"] = "1a2b", "3c4d"
  for runs, is_told in ((finished, True), (finished[:1], False)):
    figure = figures.draw(runs)["fresh_to_target"]
    assert ("by code 1a2b/3c4d" in figure.get_supxlabel()) == is_told


def test_a_figure_tells_that_its_runs_were_made_on_several_processors(
  make_record,
):
  finished = _runs(make_record, "baseline", [800, 900])
  finished[1]["environment"] = {**finished[1]["environment"], "cpu": "other"}
  for runs, is_told in ((finished, True), (finished[:1], False)):
    figure = figures.draw(runs)["fresh_to_target"]
    assert ("\non test/other" in figure.get_supxlabel()) == is_told


@pytest.mark.parametrize("baseline, shown", [(0.6, 0.5), (0.95, 0.9)])
def test_the_target_is_the_hardest_whose_baseline_has_a_median(
  make_record, baseline, shown
):
  finished = [
    *_runs(make_record, "baseline", [800, 900, 1000], metric=baseline),
    *_runs(make_record, "after_batch", [600, 700, 650]),
  ]
  (axes,) = figures.draw(finished)["fresh_to_target"].axes
  assert axes.get_xlabel().endswith(f"accuracy {shown}")


@pytest.mark.parametrize("most", [1_500, 6_000, 90_000])
def test_counts_have_names_however_little_they_spread(most):
  _, axes = drawing.panels(height=4.0)
  axes.plot([0, 1], [900, most])
  drawing.count_upwards(axes)
  low, high = axes.get_ylim()
  assert len([y for y in axes.get_yticks() if low < y < high]) >= 3


def test_an_arm_that_never_arrives_is_drawn_without_a_median(make_record):
  finished = [
    *_runs(make_record, "baseline", [800, 900, 1000]),
    *_runs(make_record, "after_batch", [600, 700, 650], metric=0.6),
  ]
  (axes,) = figures.draw(finished)["fresh_to_target"].axes
  assert _missed(axes) == [(600, 0), (700, 0), (650, 0)]
  medians = [line for line in axes.lines if line.get_marker() == "|"]
  assert [list(line.get_ydata()) for line in medians] == [[1]]


def test_the_line_over_factors_goes_through_medians_of_what_arrived(
  make_record,
):
  finished = [
    *_runs(make_record, "baseline", [800, 900, 1000]),
    *_runs(make_record, "after_decode", [500, 450, 550], factor=2),
    *_runs(make_record, "after_decode", [300, 250, 350], factor=4),
    *_runs(make_record, "after_decode", [95, 90, 99], factor=8, metric=0.6),
  ]
  (axes,) = figures.draw(finished)["factors"].axes
  lines = _labelled(axes)
  assert [y for _, y in lines["after decode"]] == [900, 500, 300]
  assert [y for _, y in _missed(axes)] == [95, 90, 99]
  ideal = lines["if copies were fresh"]
  assert ideal == [(1, 900), (2, 450), (4, 225), (8, 112.5)]


def test_there_is_no_line_over_factors_with_fewer_than_two_echoes(make_record):
  finished = [make_record(), make_record("after_decode", 4)]
  assert "factors" not in figures.draw(finished)


def test_a_batch_size_has_the_target_that_its_own_baseline_reaches(
  make_record,
):
  finished = [
    # One seed of the smaller batch misses 0.9, which the larger reaches.
    *_runs(make_record, "baseline", [800, 900], metric=0.95),
    make_record(seed=2, consumed=1000, metric=0.6),
    *_runs(make_record, "after_batch", [400, 500, 600]),
    *_runs(make_record, "baseline", [1800, 1900], batch_size=16),
    *_runs(make_record, "after_batch", [700, 800], batch_size=16),
  ]
  small, large = comparisons.split(finished, "target")
  assert summary.own_target(small.runs) == 0.5
  assert summary.own_target(large.runs) == 0.9
  (axes,) = figures.draw(finished)["batch_sizes"].axes
  lines = _labelled(axes)
  assert lines["baseline"] == [(8, 900), (16, 1850)]
  assert lines["after batch"] == [(8, 500), (16, 750)]
  labels = [text.get_text() for text in axes.get_xticklabels()]
  assert labels == ["8\n0.5", "16\n0.9"]


def test_a_batch_size_whose_baseline_reaches_nothing_has_no_target(
  make_record,
):
  missed = [make_record(metric=0.1), make_record("after_batch", metric=0.9)]
  assert summary.own_target(missed) is None
  assert summary.own_target([make_record("after_batch")]) is None
  larger = make_record(batch_size=16)
  assert "batch_sizes" not in figures.draw([*missed, larger])


def test_buffers_are_drawn_with_none_first_and_distinct_examples_beside(
  make_record,
):
  def shared(run, share):
    counts = {**run["counts"], "distinct_share": share}
    return {**run, "counts": counts}

  finished = [
    make_record(consumed=1600),
    make_record(seed=1, consumed=1500),
    make_record(seed=2, consumed=1900, metric=0.6),
    shared(make_record("after_decode_unshuffled", consumed=800), 0.25),
    shared(make_record("after_decode", consumed=600), 0.5),
    shared(make_record("after_decode", consumed=400, echo_buffer=64), 0.75),
    # Again without a buffer: the same run, not another seed.
    make_record("after_decode_unshuffled", consumed=999, echo_buffer=64),
  ]
  fresh, distinct = figures.draw(finished)["buffers"].axes
  arm = "after_decode e=4"
  assert _labelled(fresh)[arm] == [(0, 800), (1, 600), (2, 400)]
  assert _labelled(distinct)[arm] == [(0, 0.25), (1, 0.5), (2, 0.75)]
  labels = [text.get_text() for text in fresh.get_xticklabels()]
  assert labels == ["none", "16", "64"]
  assert set(_labelled(fresh)["baseline"]) == {(0, 1600), (1, 1600)}
  without_echo = {x for x, _ in _missed(fresh)}
  assert _missed(fresh) == [(*without_echo, 1900)]
  assert [(*without_echo, y) for y in (1600, 1500)] in _seeds(fresh)


def test_one_buffer_beside_none_at_all_is_enough(make_record):
  finished = [make_record("after_decode_unshuffled")]
  assert "buffers" not in figures.draw(finished)
  assert "buffers" in figures.draw([*finished, make_record("after_decode")])


def test_targets_are_swept_up_to_the_best_value_that_was_reached(make_record):
  rising = [0.5, 0.6, 0.7, 0.75, 0.8]  # means: 0.6, 0.683, 0.75
  finished = [
    _with_curve(make_record(metric=0.8), rising),
    _with_curve(
      make_record("after_decode", metric=0.8),
      rising[:4],
      consumed=[25, 50, 75, 100],
    ),
  ]
  swept = targets.swept_targets(finished)
  assert swept[0] == 0.5
  assert swept[-1] == pytest.approx(0.75)  # reached, below the hardest, 0.9
  (axes,) = figures.draw(finished)["targets"].axes
  lines = _labelled(axes)
  assert [y for _, y in lines["baseline"]][:1] == [200]
  assert [y for _, y in lines["baseline"]][-1:] == [pytest.approx(400)]
  # The echo's last mean is 0.683: its line ends there, and says so.
  echo = lines["e = 4"]
  assert 70 < echo[-1][1] <= 75 and 0.66 < echo[-1][0] <= 0.6834
  assert _missed(axes) == [echo[-1]]


def test_the_medians_to_targets_that_were_set_have_intervals(make_record):
  finished = [
    *_runs(make_record, "baseline", [800, 900, 1000]),
    *_runs(make_record, "after_decode", [200, 300, 400]),
  ]
  (axes,) = figures.draw(finished)["targets"].axes
  assert sorted(_bars(axes)) == [
    [(0.5, 0.5), (200, 400)],
    [(0.5, 0.5), (800, 1000)],
    [(0.9, 0.9), (200, 400)],
    [(0.9, 0.9), (800, 1000)],
  ]


def test_no_target_is_swept_beyond_where_runs_were_stopped(make_record):
  finished = [_with_curve(make_record(), [0.8, 0.95, 0.99, 0.99])]
  assert targets.swept_targets(finished)[-1] == 0.9


def test_targets_of_a_loss_are_swept_downwards(make_record):
  run = _with_curve(make_record(targets=(5.0, 3.0)), [6, 5, 4, 4, 4])
  run["metric"]["maximize"] = False
  swept = targets.swept_targets([run])
  assert (swept[0], swept[-1]) == (5, 4)
  assert curves.reached(run, 4.5)["consumed"] == 275
  assert targets.best(run) == 4


def test_best_values_are_taken_within_the_shortest_run(make_record):
  rising = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
  finished = [
    _with_curve(make_record(), rising),
    _with_curve(
      make_record("after_decode"),
      rising,
      consumed=[50 * i for i in range(1, 7)],
    ),
  ]
  by_fresh, by_steps = figures.draw(finished)["best_values"].axes
  assert by_fresh.get_title() == "by 300 fresh examples"
  assert [points[0] for points in _seeds(by_fresh)] == [
    (pytest.approx(0.5), 0),  # the echo: all six evaluations
    (pytest.approx(0.2), 1),  # the baseline: the first three
  ]
  assert by_steps.get_title() == "by 60 steps"
  assert [p[0][0] for p in _seeds(by_steps)] == [pytest.approx(0.5)] * 2


def test_an_arm_with_too_few_values_by_then_is_named(make_record):
  finished = [
    _with_curve(make_record(), [0.5] * 4),
    _with_curve(
      make_record("after_decode"), [0.5] * 4, consumed=[20, 30, 40, 50]
    ),
  ]
  (axes, _) = figures.draw(finished)["best_values"].axes
  labels = [text.get_text() for text in axes.get_yticklabels()]
  assert labels[1] == "baseline (too few values on the left)"
  assert best_values.at_equal({}, "step") == {}


def test_curves_are_drawn_over_fresh_examples_and_over_steps(make_record):
  run = _with_curve(make_record(), [0.0, 0.3, 0.6, 0.9])
  over_fresh, over_steps = figures.draw([run])["curves"].axes
  assert over_fresh.lines[0].get_xydata().tolist() == [
    [200, pytest.approx(0.3)],  # in the middle of the three
    [300, pytest.approx(0.6)],
  ]
  assert list(over_steps.lines[0].get_xdata()) == [20, 30]
  for axes in (over_fresh, over_steps):
    assert axes.xaxis.get_major_formatter()(30_000) == "30,000"
    assert axes.xaxis.get_minor_locator()() == []


def test_the_median_of_curves_ends_with_the_shortest_run(make_record):
  finished = [
    _with_curve(make_record(seed=0), [0.0, 0.3, 0.6]),
    _with_curve(make_record(seed=1), [0.3, 0.6, 0.9, 0.9, 0.9]),
    _with_curve(
      make_record(seed=2),
      [0.3, 0.3, 0.3, 0.3],
      consumed=[100, 220, 320, 400],
    ),
  ]
  over_fresh, over_steps = figures.draw(finished)["curves"].axes
  for axes, at in ((over_fresh, 200), (over_steps, 20)):
    *runs, median = axes.lines[:4]
    assert [len(run.get_xdata()) for run in runs] == [1, 3, 2]
    assert median.get_linewidth() > runs[0].get_linewidth()
    assert median.get_xydata().tolist() == [[at, pytest.approx(0.3)]]


def test_a_falling_factor_is_drawn_beside_those_it_lies_between(make_record):
  final = {"measure": "final"}
  falling = make_record("after_decode", 4, consumed=400, metric=0.8, **final)
  falling["settings"]["arm"]["last_factor"] = 1.0
  finished = [
    make_record(consumed=800, metric=0.9, **final),
    make_record("after_decode", 4, consumed=200, metric=0.7, **final),
    make_record("after_batch", 4, consumed=200, metric=0.6, **final),
    falling,
  ]
  (axes,) = figures.draw(finished)["falling_factor"].axes
  assert _labelled(axes) == {
    "baseline": [(800, 0.9)],
    "after_decode e=4": [(200, 0.7)],
    "after_decode e=4:1": [(400, 0.8)],
  }
  assert "falling_factor" not in figures.draw(finished[:3])


def test_wall_time_shows_the_time_model_and_who_missed(make_record):
  # 1.5 of 2 s busy, 800 copies: 1.875 ms downstream, 4 ms upstream.
  finished = [
    make_record(upstream_ms=4.0),
    make_record("after_decode", consumed=200, metric=0.6, upstream_ms=4.0),
  ]
  (axes,) = figures.draw(finished)["wall_time"].axes
  assert _seeds(axes) == [[(2.0, 1)]]
  assert _missed(axes) == [(2.0, 0)]
  (model,) = [line for line in axes.lines if line.get_marker() == "d"]
  assert list(model.get_xdata())[1] == pytest.approx(800 * 4 / 1000)
  labels = [text.get_text() for text in axes.get_yticklabels()]
  assert labels[0] == "after_decode e=4, 4 ms, R = 2.1 (1 missed it)"


def test_wall_time_is_drawn_over_two_steady_upstreams_and_more(make_record):
  finished = [make_record(upstream_ms=ms) for ms in (3.75, 7.5)]
  (axes,) = figures.draw(finished)["wall_time_over_ratio"].axes
  assert _labelled(axes)["baseline"] == [(2, 2.0), (4, 2.0)]
  model = [line for line in axes.lines if line.get_marker() == "d"][0]
  assert list(model.get_ydata()) == pytest.approx([3.0, 6.0])
  jittery = make_record(upstream_ms=7.5, upstream_jitter=0.5)
  assert "wall_time_over_ratio" not in figures.draw([finished[0], jittery])


def test_every_figure_says_what_its_runs_were_made_with(make_record):
  for figure in figures.draw([make_record(seed=s) for s in (0, 1)]).values():
    text = figure.get_supxlabel()
    for part in ("resnet32_cifar10 small", "batch 8", "TensorFlow 2.21.0"):
      assert part in text
    assert "2 seeds" in text


def test_a_figure_says_how_many_seeds_there_are_of_what_it_shows(make_record):
  drawn = figures.draw(
    [
      *_runs(make_record, "baseline", [800, 900, 1000]),
      *_runs(make_record, "after_batch", [700, 800]),
      make_record(upstream_ms=2.0),
      make_record("after_batch", upstream_ms=2.0),
    ]
  )
  for name, count in (("fresh_to_target", "2-3"), ("wall_time", "1")):
    assert f", {count} seeds, every one" in drawn[name].get_supxlabel()


def test_runs_of_other_settings_or_versions_get_figures_of_their_own(
  make_record,
):
  older = make_record(seed=1)
  older["environment"] = {**older["environment"], "tensorflow": "2.15.1"}
  drawn = figures.draw([make_record(seed=0), older])
  names = [name for name in drawn if name.startswith("fresh_to_target")]
  assert names == [
    "fresh_to_target_tensorflow=2.21.0",
    "fresh_to_target_tensorflow=2.15.1",
  ]
  for name in names:
    assert len(_seeds(drawn[name].axes[0])[0]) == 1
    assert name.split("=")[1] in drawn[name].get_supxlabel()


def test_a_figure_over_a_setting_says_what_changes_with_it(make_record):
  finished = [
    make_record(batch_size=8, max_steps=40),
    make_record(batch_size=16, max_steps=20),
    make_record("after_batch", batch_size=8, max_steps=40),
  ]
  text = figures.draw(finished)["batch_sizes"].get_supxlabel()
  assert "batch 8/16" in text and "max_steps 40/20" in text


@pytest.fixture(scope="module")
def recorded():
  """All figures of all recorded files."""
  return figures.draw(comparisons.load(RESULTS))


def test_the_recorded_runs_are_drawn(recorded):
  assert {
    "fresh_to_target",
    "factors",
    "targets",
    "best_values",
    "curves",
    "wall_time",
    "final",
    "falling_factor",
  } <= {name.split("_preset")[0] for name in recorded} | set(recorded)


@pytest.mark.one_stack
def test_the_same_records_give_the_same_bytes(recorded, tmp_path):
  again = figures.draw(comparisons.load(RESULTS))
  for name, drawn in (("one", recorded), ("two", again)):
    (tmp_path / name).mkdir()
    figures.save(drawn, tmp_path / name)
  for path in (tmp_path / "one").iterdir():
    assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def _draw(*flags):
  return scripts.run("experiments.figures", *flags)


def test_several_files_are_drawn_by_the_script(make_record, tmp_path):
  for size in (8, 16):
    with records.RecordFile(tmp_path / f"{size}.jsonl") as file:
      file.append(make_record(batch_size=size))
  files = f"--results={tmp_path}/8.jsonl,{tmp_path}/16.jsonl"
  done = _draw(files, f"--output_dir={tmp_path}/made")
  assert done.returncode == 0, done.stderr
  assert (tmp_path / "made" / "batch_sizes.png").exists()
  assert (tmp_path / "made" / "curves_batch_size=8.png").exists()


@pytest.mark.parametrize(
  "arguments, message",
  [
    (["--results=/no/such/file"], "error: --results: "),
    (["--results=a", "--stall=b"], "error: --results: needs a file"),
  ],
)
def test_what_it_cannot_draw_is_told_in_one_line(tmp_path, arguments, message):
  done = _draw(*arguments, f"--output_dir={tmp_path}/made")
  assert done.returncode == 1
  assert done.stderr.splitlines()[-1].startswith(message)
  assert not (tmp_path / "made").exists()
