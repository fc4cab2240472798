"""Scores of anybody's metrics in tables: titled, bounded and marked as the metric says, never without a word."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from gcdbench.plugins.checks import spec_problem
from gcdbench.plugins.manager import PluginManager, get_manager
from gcdbench.plugins.specs import MetricSpec
from gcdbench.reporting.scores import score_catalogue
from gcdbench.reporting.tables.grid import lay_out
from gcdbench.reporting.tables.render import render_text
from gcdbench.reporting.tables.suite_table import suite_table

SEEDS = range(7)
SILENT = """
from gcdbench.plugins import MetricSpec, hookimpl

@hookimpl
def gcdbench_metrics():
    return [MetricSpec(name="silent", api=2, factory=__name__ + ":lost_images")]

def lost_images(y_true, cluster, is_old, anchored):
    return {"lost_images": float((y_true != cluster).sum())}
"""
BOASTFUL = """
from gcdbench.plugins import MetricSpec, Score, hookimpl

@hookimpl
def gcdbench_metrics():
    return [
        MetricSpec(name="boastful", api=2, factory=__name__ + ":nothing", scores=[Score(key="all", direction="lower")]),
        MetricSpec(name="torn", api=2, factory=__name__ + ":nothing", scores="not_installed_at_all:SCORES"),
    ]

def nothing(y_true, cluster, is_old, anchored):
    return {}
"""


@pytest.fixture
def silent_plugin(tmp_path: Path) -> Path:
    """A metric that does not describe its score."""
    path = tmp_path / "silent.py"
    path.write_text(SILENT)
    return path


@pytest.fixture
def manager(example_plugin: Path, silent_plugin: Path) -> PluginManager:
    """The example package's metrics beside ours, and a silent one: this is what the store is scored with."""
    return PluginManager(points=[], files=[example_plugin, silent_plugin])


def test_a_third_partys_metric_where_lower_is_better_gets_bold_on_the_right_row(store, suite, manager) -> None:
    store.add("simgcd", SEEDS, accuracy=0.5)  # its classes are spread over more clusters
    store.add("legogcd", SEEDS, accuracy=0.95)
    scores = ("all", "purity", "fragments", "lost_images")
    table = suite_table(suite, store.records(), manager, scores=scores)
    bold = {score: [row for row in ("simgcd", "legogcd") if table.entry(row, "kvasir", score).bold] for score in scores}
    means = [table.entry(row, "kvasir", "fragments").mean for row in ("simgcd", "legogcd")]
    assert means[0] > means[1]
    assert bold == {"all": ["legogcd"], "purity": ["legogcd"], "fragments": ["legogcd"], "lost_images": []}
    assert not any("lost" in note for note in table.notes)
    text = render_text(lay_out(table))
    assert "lost images" in text  # a title made from the key
    assert f"{means[1]:.2f} ±" in text  # with the decimals that the metric wants


def test_intervals_stay_within_the_bounds_that_a_metric_gives(store, suite, manager) -> None:
    for seed, fragments in ((0, 1.0), (1, 4.0)):  # Student's interval of two runs so far apart reaches far below 1
        path = store.add("simgcd", [seed]).scores_path
        scores = json.loads(path.read_text())
        scores["sets"]["transductive"]["scores"] |= {"fragments": fragments, "lost_images": fragments}
        path.write_text(json.dumps(scores))
    table = suite_table(suite, store.records(), manager, scores=["fragments", "lost_images"])
    assert table.entry("simgcd", "kvasir", "fragments").low == 1.0
    assert table.entry("simgcd", "kvasir", "fragments").high > 4.0
    assert table.entry("simgcd", "kvasir", "lost_images").low < 0.0  # nobody said that it cannot be


def test_nobody_can_turn_the_direction_of_our_scores_and_torn_descriptions_break_no_table(tmp_path: Path) -> None:
    path = tmp_path / "boastful.py"
    path.write_text(BOASTFUL)
    catalogue = score_catalogue(PluginManager(points=[], files=[path]))
    assert catalogue["all"].direction == "higher"
    assert catalogue["false_old"].direction == "lower"
    assert catalogue["seconds"].direction == "none"


def test_doctor_names_descriptions_that_do_not_load(
    tmp_path: Path, cli: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "boastful.py").write_text(BOASTFUL)
    monkeypatch.setenv("GCDBENCH_PLUGINS", str(tmp_path / "boastful.py"))
    get_manager.cache_clear()
    said = cli("doctor")
    listed = cli("list", "metrics", "--json")
    get_manager.cache_clear()
    assert said.exit_code == 1
    assert "the scores of metric torn are not described" in said.output
    assert '"direction": "lower"' in listed.output


@pytest.mark.parametrize("scores", [[1], ({"key": "x"},), 7])
def test_scores_that_are_no_descriptions_are_refused_where_they_are_registered(scores: object) -> None:
    spec = MetricSpec(name="odd", factory="nowhere:nothing", scores=scores)  # type: ignore[arg-type]
    assert "must be a tuple of Score" in str(spec_problem(spec, MetricSpec))
