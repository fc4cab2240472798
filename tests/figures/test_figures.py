"""Figures hold the numbers they were given, are the same every time, and refuse what is not there."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("gcdbench_medxplore")

from gcdbench_medxplore.study import FOLDER

from gcdbench.core.errors import ConfigError
from gcdbench.metrics.error_terms import HEAD_TERMS, TERMS
from gcdbench.plugins.manager import PluginManager
from gcdbench.reporting.figures.accuracy import Panel, Point, draw_bars, draw_curves
from gcdbench.reporting.figures.errors import ErrorPanel, draw_errors
from gcdbench.reporting.figures.examples import Example, draw_examples
from gcdbench.reporting.figures.runs import draw_confusion, draw_embedding, draw_training, sample_evenly, tsne
from gcdbench.reporting.figures.sources import (
    bar_figure,
    confusion_figure,
    embedding_figure,
    error_figure,
    training_figure,
)
from gcdbench.reporting.figures.style import INK, add_caption, draw_caption, save, to_svg
from gcdbench.reporting.records import cell_records
from gcdbench.reporting.report.plots import Plots
from gcdbench.reporting.scores import score_catalogue
from gcdbench.reporting.suites.read import load_suite
from gcdbench.reporting.tables.bootstrap import RunBootstrap
from gcdbench.reporting.tables.model import ColumnHead, Entry, ResultTable, RowHead
from gcdbench.reporting.tables.suite_table import suite_table
from gcdbench.runs.events import EpochEnd
from gcdbench.runs.index import load_runs
from gcdbench.runs.request import Request
from gcdbench.testing.stored import FakeRun, write_fake_run

PUBLISHED = {"true_old_confusion": 7.05, "false_new": 2.02, "false_old": 14.5, "true_new_confusion": 3.65}


def texts(figure):
    """Every text in a figure's SVG, which must be well-formed."""
    return [element.text for element in ET.fromstring(to_svg(figure)).iter() if element.tag.endswith("text")]


def test_error_maps_show_their_four_terms():
    shown = texts(draw_errors([ErrorPanel(title="SimGCD", terms=PUBLISHED)], 1))
    assert {"7.05 %", "2.02 %", "14.50 %", "3.65 %"} <= set(shown)
    assert "SimGCD" in shown


def test_a_figure_is_the_same_every_time_and_takes_the_page_colour(tmp_path):
    def draw():
        return draw_errors([ErrorPanel(title="x", terms=PUBLISHED)], 1)

    assert to_svg(draw()) == to_svg(draw())
    assert INK not in to_svg(draw())
    assert "currentColor" in to_svg(draw())
    for suffix in (".svg", ".pdf", ".png"):
        save(draw(), tmp_path / f"a{suffix}")
        save(draw(), tmp_path / f"b{suffix}")
        assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()
    with pytest.raises(ConfigError, match="must end in"):
        save(draw(), tmp_path / "a.bmp")


def test_bars_and_curves_accept_gaps():
    points = [
        Point(label="a", mean=50.0, low=45.0, high=55.0, x=0.1, reported=52.0),
        Point(label="b", mean=None, x=0.5),
        Point(label="c", mean=60.0, x=1.0),
    ]
    panel = Panel(title="Kvasir", series={"all": points, "old": points}, names={"all": "All", "old": "Old"})
    shown = texts(draw_bars([panel, panel]))
    assert {"a", "b", "c", "All", "Old"} <= set(shown)
    assert "0.5" in texts(draw_curves([panel]))


def test_confusion_in_percent_of_each_class_and_an_extra_column_only_when_used():
    matrix = np.array([[8, 2, 0], [0, 5, 0]])
    shown = texts(draw_confusion(matrix, ["polyp", "cecum"], 1, "t"))
    assert {"80", "20", "100"} <= set(shown)
    assert "no class" not in shown
    matrix[1, 2] = 5
    assert "no class" in texts(draw_confusion(matrix, ["polyp", "cecum"], 1, "t"))


def test_training_curves_take_the_last_of_repeated_epochs():
    told = [(0, 9.0), (1, 8.0), (0, 3.0), (1, 2.0)]
    events = [EpochEnd(epoch=epoch, epochs=2, lr=0.1, losses={"cls": value}) for epoch, value in told]
    figure = draw_training({"run": events})
    (line,) = figure.axes[0].lines
    assert list(line.get_xdata()) == [1, 2]
    assert list(line.get_ydata()) == [3.0, 2.0]


def test_tsne_keeps_separate_classes_apart():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(3), 30)
    points = tsne(10 * np.eye(3)[labels] + rng.normal(size=(90, 3)))
    centres = np.array([points[labels == c].mean(0) for c in range(3)])
    nearest = np.argmin(((points[:, None] - centres) ** 2).sum(2), axis=1)
    assert (nearest == labels).mean() > 0.95
    assert len(sample_evenly(10_000, 500)) == 500
    assert sample_evenly(3).tolist() == [0, 1, 2]
    shown = texts(draw_embedding(points, labels, ["a", "b", "c"], 2, "t"))
    assert {"a (old)", "c (new)"} <= set(shown)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    runs, manager = tmp_path_factory.mktemp("runs"), PluginManager(points=[])
    for seed in (0, 1):
        request = Request(method="simgcd", dataset="kvasir", preset="laptop", seed=seed)
        directory = write_fake_run(runs, FakeRun(request=request, embedding=seed == 0), manager)
    return runs, manager, directory


def test_the_error_figure_of_a_suite_shows_measured_beside_published(stored):
    runs, manager, _ = stored
    table = suite_table(load_suite(FOLDER / "errors.toml", manager), cell_records(load_runs(runs)), manager)
    shown = texts(error_figure(table))
    mean = table.entry("simgcd", "kvasir", "false_old").mean
    assert f"{mean:.2f} %" in shown
    assert "14.50 %" in shown
    assert "0.80 %" in shown
    assert f"± {table.entry('simgcd', 'kvasir', 'false_old').sd:.2f}" in shown
    assert any("n = 2 of 20" in text for text in shown)  # the suite plans twenty seeds


def test_the_error_figure_shows_the_errors_by_the_head_where_they_were_scored(stored):
    runs, manager, _ = stored
    records = cell_records(load_runs(runs))
    table = suite_table(
        load_suite(FOLDER / "errors.toml", manager), records, manager, scores=("all", *TERMS, *HEAD_TERMS)
    )
    shown = texts(error_figure(table))
    assert sum("measured, by the head" in text for text in shown) == 1
    assert f"{table.entry('simgcd', 'kvasir', 'head_false_old').mean:.2f} %" in shown
    without = suite_table(load_suite(FOLDER / "errors.toml", manager), records, manager, scores=("all", *TERMS))
    assert not any("by the head" in text for text in texts(error_figure(without)))


def test_bars_say_what_they_stand_for(stored):
    runs, manager, _ = stored
    records = cell_records(load_runs(runs))
    suite = load_suite(FOLDER / "main.toml", manager)
    table = suite_table(suite, records, manager, seeds=[0], bootstrap=RunBootstrap())
    figure = bar_figure(table)
    draw_caption(figure)
    shown = " ".join(filter(None, texts(figure)))
    assert "SimGCD (1)" in shown
    assert "preset laptop" in shown
    assert "OrganAMNIST, OrganCMNIST, NCT-CRC-HE-100K." in shown.partition("Not run: ")[2]


def test_intervals_over_images_look_different_from_those_over_seeds():
    def lines(over_images):
        point = Point(label="a", mean=50.0, low=45.0, high=55.0, over_images=over_images)
        (axis,) = draw_bars([Panel(title="Kvasir", series={"all": [point]})]).axes
        return [(line.get_alpha(), len(axis.lines)) for line in axis.collections]

    assert lines(True) != lines(False)


def test_ten_panels_are_wrapped_to_the_width_of_a_page():
    """In points, 1/72 inch: a page of 1,400 px is 1,050 wide."""

    def width(figure):
        return float(ET.fromstring(to_svg(figure)).get("viewBox").split()[2])

    points = [Point(label="a method", mean=50.0, low=45.0, high=55.0, x=x) for x in (0.1, 0.5, 1.0)]
    panels = [Panel(title=f"dataset {i}", series={"all": points, "old": points, "new": points}) for i in range(10)]
    scores = (*TERMS, *HEAD_TERMS)
    rows = [RowHead(key=f"row {i}", labels=(f"method {i}",)) for i in range(10)]
    table = ResultTable(
        name="ten",
        title="ten",
        caption="Ten rows.",
        label_titles=("method",),
        rows=tuple(rows),
        columns=(ColumnHead(key="kvasir", title="Kvasir"),),
        scores=scores,
        entries={(row.key, "kvasir", score): Entry(n=3, mean=5.0, sd=1.0) for row in rows for score in scores},
        catalogue=score_catalogue(PluginManager(points=[])),
    )
    for figure, drawn in ((draw_bars(panels), 10), (draw_curves(panels), 10), (error_figure(table), 20)):
        assert sum(axis.axison for axis in figure.axes) == drawn
        assert width(figure) < 1050
        places = [axis.get_position().y0 for axis in figure.axes]
        assert len(set(places)) > 1


def test_a_caption_is_text_of_the_page_and_not_of_the_picture():
    panel = Panel(title="Kvasir", series={"all": [Point(label="a", mean=50.0)]})

    def draw():
        figure = draw_bars([panel])
        add_caption(figure, "Lines are 95 % intervals & nothing else.")
        return figure

    page = Plots().embed(draw, "Accuracies")
    picture, _, below = page.partition("</svg>")
    assert "intervals" not in picture
    assert "<figcaption>Lines are 95 % intervals &amp; nothing else.</figcaption>" in below
    alone = draw()
    draw_caption(alone)  # a file of its own has no page around it
    assert any("intervals" in (text or "") for text in texts(alone))


def test_figures_of_runs(stored):
    runs, _, directory = stored
    by_seed = {e.seed: e.path for e in load_runs(runs)}
    first = type(directory)(by_seed[0])
    assert "old 0" in texts(confusion_figure(first))
    assert "cls_s" in texts(training_figure([first]))
    shown = texts(training_figure([first, first, type(directory)(by_seed[1])]))
    assert "simgcd on kvasir, seed 1" in shown
    assert f"simgcd on kvasir, seed 0 ({first.path.name[:8]})" in shown
    assert "old 0 (old)" in texts(embedding_figure(first))
    with pytest.raises(ConfigError, match="no stored embedding"):
        embedding_figure(type(directory)(by_seed[1]))


def test_examples_show_each_group_and_say_where_one_is_empty():
    image = np.zeros((128, 128, 3), dtype=np.uint8)
    groups = {"old": [Example(pixels=image, caption="polyp")], "false-old": []}
    shown = texts(draw_examples(groups, "run"))
    assert {"old", "polyp", "false-old: none", "run"} <= set(shown)
    with pytest.raises(ConfigError, match="no image"):
        draw_examples({"old": []}, "run")
