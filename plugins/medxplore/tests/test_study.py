"""The study that goes with the package: its suites ask for what exists, and its preset is the paper's setting."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from gcdbench_medxplore import study

from gcdbench.cli.main import command
from gcdbench.core.errors import UnknownName
from gcdbench.datasets.protocols import card_of, protocol_names
from gcdbench.plugins.manager import PluginManager, get_manager
from gcdbench.reporting.published.reported import read_reported
from gcdbench.reporting.suites.finding import plan_fingerprint
from gcdbench.reporting.suites.model import request_for, stand_in_column
from gcdbench.reporting.suites.read import load_suite
from gcdbench.runs.plan import make_plan
from gcdbench.runs.request import Request

NAMES = [spec.name for spec in study.suites()]
DIRECTORY = Path(__file__).parents[2] / "directory.toml"


@pytest.mark.parametrize("name", NAMES)
def test_every_suite_asks_for_runs_that_exist(name):
    """Methods, variants, settings, datasets, protocols and presets are all known, under every preset."""
    installed = get_manager()
    suite = load_suite(name, installed)
    assert set(suite.presets) == {"paper", "laptop", "smoke"}
    for preset in suite.presets.values():
        for row in suite.rows:
            for column in suite.columns:
                for used in {column, stand_in_column(suite, column, installed)}:
                    plan = make_plan(request_for(suite, row, used, preset, 0), installed)
                    assert plan.protocol.name in protocol_names(card_of(used.dataset, installed))


@pytest.mark.parametrize("name", NAMES)
def test_published_numbers_named_by_a_suite_are_there(name):
    suite = load_suite(name, get_manager())
    printed = [row for file in suite.reported for row in read_reported(suite.folder / file)]
    datasets = {column.dataset for column in suite.columns}
    for row in suite.rows:
        if row.reported_method:
            assert any(
                (line.method, line.variant) == (row.reported_method, row.reported_variant) and line.dataset in datasets
                for line in printed
            ), row.key


def test_settings_of_a_row_may_differ_by_preset():
    """Which package finds DCCL's concepts is part of the table's plan, not of what happens to be installed."""
    suite = load_suite("medxplore/main", get_manager())
    (dccl,) = (row for row in suite.rows if row.method == "dccl")
    found = {
        name: request_for(suite, dccl, suite.columns[0], preset, 0).overrides["communities"]
        for name, preset in suite.presets.items()
    }
    assert found == {"paper": "infomap", "laptop": "infomap", "smoke": "louvain"}


def test_the_main_suite_has_the_papers_methods_and_datasets_and_repeats_splits():
    suite = load_suite("medxplore/main", get_manager())
    assert sum(bool(row.reported_method) for row in suite.rows) == 10
    theirs = {"kvasir", "organamnist", "organcmnist", "nct-crc-he-100k"}
    assert {c.dataset for c in suite.columns} == theirs | {"pbc"}
    assert suite.replicate == "split"


def test_no_split_of_the_confirmation_was_seen_before():
    """Its splits are in no other suite, and split 0 is that of the runs that repeat the training alone."""
    installed = get_manager()
    own = set(load_suite("confirmation", installed).preset("laptop").seeds)
    others = [load_suite(name, installed) for name in NAMES if not name.endswith("/confirmation")]
    repeated = [suite for suite in others if suite.replicate == "split"]
    assert repeated
    assert not any(own & {0, *suite.preset("laptop").seeds} for suite in repeated)


def test_the_papers_preset_has_the_values_of_the_preset_for_a_gpu():
    """Runs made under either name are one run; the settings are those the paper states."""
    plans = [
        make_plan(Request(method="medxplore", dataset="kvasir", preset=preset), get_manager())
        for preset in ("paper", "gpu")
    ]
    assert plan_fingerprint(plans[0]) == plan_fingerprint(plans[1])
    settings, training = plans[0].settings, plans[0].training
    assert (settings.backbone, settings.image_size, settings.views) == ("resnet18", 224, "online")
    assert (training.epochs, training.batch_size, training.lr) == (200, 128, 0.1)


@pytest.mark.skipif(not DIRECTORY.exists(), reason="the directory of plugins is part of the repository")
def test_the_directory_of_plugins_says_what_the_package_offers():
    listed = tomllib.loads(DIRECTORY.read_text(encoding="utf-8"))["gcdbench-medxplore"]
    installed = get_manager()
    own = {
        kind: [name for name in installed.names(kind) if installed.provider(kind, name)[0] == "gcdbench-medxplore"]
        for kind in listed
    }
    assert {kind: sorted(names) for kind, names in listed.items()} == own


def test_tables_without_the_package(monkeypatch, tmp_path):
    """By name the command says which package is needed; by file the table says what is missing in it."""
    monkeypatch.setattr("gcdbench.plugins.manager.get_manager", lambda: PluginManager(points=[]))
    asked = CliRunner().invoke(command, ["table", "main", "--runs", str(tmp_path)])
    assert isinstance(asked.exception, UnknownName)
    assert "There is no suite named 'main'" in asked.exception.message
    assert asked.exception.hint == "The package 'gcdbench-medxplore' offers it and is not installed here."
    shown = CliRunner().invoke(command, ["table", str(study.FOLDER / "errors.toml"), "--runs", str(tmp_path)])
    assert shown.exit_code == 0, shown.output
    assert "Not installed here: method 'medxplore'" in shown.output
    assert "14.50" in shown.output  # what the paper reports needs no package


def test_without_the_package_its_names_are_answered_with_it():
    alone = PluginManager(points=[])
    names = (("suites", "main"), ("suites", "medxplore/errors"), ("presets", "paper"), ("methods", "medxplore"))
    for kind, name in names:
        with pytest.raises(UnknownName, match=name) as caught:
            alone.get(kind, name)
        assert "'gcdbench-medxplore' offers it and is not installed" in caught.value.hint
