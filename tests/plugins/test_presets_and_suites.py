"""Presets and suites of a third party: registered by hooks, used by name, refused with a sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from gcdbench.core.errors import ConfigError, UnknownName
from gcdbench.plugins import directory
from gcdbench.plugins.manager import PluginManager, get_manager
from gcdbench.reporting.records import cell_records
from gcdbench.reporting.suites.read import load_suite
from gcdbench.reporting.tables.suite_table import suite_table
from gcdbench.runs.index import load_runs
from gcdbench.runs.plan import make_plan
from gcdbench.runs.request import Request
from gcdbench.testing.stored import FakeRun, write_fake_run

PLUGIN = """
from pathlib import Path

from gcdbench.plugins import DatasetSpec, PresetSpec, SuiteSpec, hookimpl

HERE = Path(__file__).parent


@hookimpl
def gcdbench_presets():
    options = {{"n_per_class": "8"}}
    return [PresetSpec(name="{preset}", api=2, summary="short", settings={settings}, dataset_options=options)]


@hookimpl
def gcdbench_suites():
    return [SuiteSpec(name="{study}/{suite}", api=2, file=str(HERE / "table.toml"))]
"""

SUITE = """
title = "Their table"
reported = "printed.csv"

[presets.short]
seeds = [0, 1]

[[columns]]
dataset = "phantom"

[[rows]]
method = "simgcd"
reported = "simgcd"
"""

PRINTED = "method,dataset,all,old,new\nsimgcd,phantom,61.5,60.0,62.0\n"


@pytest.fixture
def plugin(tmp_path: Path) -> Callable[..., Path]:
    """Writes a plugin file with a preset and a suite, each in a folder of its own."""

    def write(
        name: str = "theirs",
        *,
        preset: str = "short",
        study: str = "theirs",
        suite: str = "table",
        settings: object = None,
    ) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "table.toml").write_text(SUITE)
        (folder / "printed.csv").write_text(PRINTED)
        given = {"image_size": 64, "epochs": 3, "batch_size": 16} if settings is None else settings
        path = folder / f"{name}.py"
        path.write_text(PLUGIN.format(preset=preset, study=study, suite=suite, settings=given))
        return path

    return write


def test_a_preset_gives_settings_and_options_to_datasets_that_declare_them(plugin: Callable[..., Path]) -> None:
    manager = PluginManager(points=[], files=[plugin()])
    request = Request(method="simgcd", dataset="phantom", preset="short")
    plan = make_plan(request, manager)
    assert (plan.settings.image_size, plan.training.epochs, plan.training.batch_size) == (64, 3, 16)
    assert plan.settings.backbone == "efficientnet-lite0"
    assert plan.dataset_options == {"n_per_class": "8"}
    assert plan.dataset.size(plan.dataset_options) == 64
    kvasir = make_plan(Request(method="simgcd", dataset="kvasir", preset="short"), manager)
    assert kvasir.dataset_options == {}
    own = make_plan(
        Request(method="simgcd", dataset="phantom", preset="short", dataset_options={"n_per_class": "12"}), manager
    )
    assert own.dataset_options == {"n_per_class": "12"}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"epoks": 3}, "did you mean 'epochs'"),
        ({"epochs": "many"}, "'epochs' must be of type int"),
        ({"epochs": 0}, "'epochs' must be at least 1"),
        ({"epochs": [3]}, "unhashable"),
    ],
)
def test_a_wrong_preset_is_named_with_its_package_when_it_is_used(
    plugin: Callable[..., Path], settings: object, said: str
) -> None:
    manager = PluginManager(points=[], files=[plugin(settings=settings)])
    with pytest.raises(ConfigError, match=r"The preset 'short' of theirs\.py is wrong") as caught:
        make_plan(Request(method="simgcd", dataset="phantom", preset="short"), manager)
    assert said in caught.value.message
    make_plan(Request(method="simgcd", dataset="phantom", preset="laptop"), manager)  # others still work


def test_a_suite_is_called_by_its_full_name_or_by_the_end_of_it(plugin: Callable[..., Path], tmp_path: Path) -> None:
    manager = PluginManager(points=[], files=[plugin()])
    assert load_suite("table", manager) == load_suite("theirs/table", manager)
    assert load_suite("table", manager) == load_suite(tmp_path / "theirs" / "table.toml", manager)
    with pytest.raises(UnknownName, match="did you mean 'theirs/table'"):
        load_suite("theirs/tabel", manager)


def test_two_studies_may_have_a_suite_of_one_name(plugin: Callable[..., Path]) -> None:
    files = [plugin("theirs"), plugin("others", study="others", preset="long")]
    manager = PluginManager(points=[], files=files)
    assert load_suite("others/table", manager).title == "Their table"
    with pytest.raises(ConfigError, match="'table' may mean others/table or theirs/table"):
        load_suite("table", manager)


def test_the_table_of_a_third_partys_suite_has_its_runs_and_reported_numbers(
    plugin: Callable[..., Path], tmp_path: Path
) -> None:
    manager = PluginManager(points=[], files=[plugin()])
    for seed in (0, 1):
        request = Request(
            method="simgcd", dataset="phantom", preset="short", seed=seed, overrides={"protocol.split_seed": seed}
        )
        write_fake_run(tmp_path / "runs", FakeRun(request=request), manager)
    table = suite_table(load_suite("table", manager), cell_records(load_runs(tmp_path / "runs")), manager)
    entry = table.entry("simgcd", "phantom", "all")
    assert entry.n == 2
    assert entry.reported is not None
    assert entry.reported.value == 61.5
    assert "preset short (short)" in table.caption
    assert any("where preset short differs" in note for note in table.notes)


@pytest.mark.parametrize("name", ["table", "a/b/c", "/table", "theirs/", "theirs/ta ble"])
def test_a_suites_name_has_a_study_and_a_name(plugin: Callable[..., Path], name: str) -> None:
    path = plugin()
    path.write_text(path.read_text().replace('"theirs/table"', repr(name)))
    with pytest.raises(Exception, match="cannot be a name: study/suite"):
        PluginManager(points=[], files=[path])


@pytest.fixture
def installed(plugin: Callable[..., Path], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GCDBENCH_PLUGINS", str(plugin()))
    get_manager.cache_clear()
    yield
    get_manager.cache_clear()


@pytest.mark.usefixtures("installed")
def test_they_are_listed_and_used_on_the_command_line(cli: Callable[..., Result]) -> None:
    rows = {row["name"]: row for row in json.loads(cli("list", "suites", "--json").stdout)}
    assert rows["theirs/table"]["summary"] == "Their table"
    assert "short" in cli("list", "presets").stdout
    planned = json.loads(cli("sweep", "theirs/table", "--preset", "short", "--dry-run", "--json").stdout)
    assert [run["state"] for run in planned["runs"]] == ["missing", "missing"]
    assert "61.5" in cli("table", "theirs/table").stdout
    plugins = json.loads(cli("list", "plugins", "--json").stdout)
    assert any(found["provides"].get("suites") == ["theirs/table"] for found in plugins)


def test_what_is_not_installed_is_answered_with_the_package_that_offers_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For every kind, by a data file: a package that is added to it is named without a change of code."""
    file = tmp_path / "directory.toml"
    file.write_text(
        '[gcd-of-theirs]\nsuites = ["theirs/table"]\npresets = ["short"]\nmethods = ["m"]\ndatasets = ["d"]\n'
    )
    monkeypatch.setattr(directory, "directory_file", lambda: file)
    directory.known_packages.cache_clear()
    manager = PluginManager(points=[])
    asked = (("suites", "table"), ("suites", "theirs/table"), ("presets", "short"), ("methods", "m"), ("datasets", "d"))
    for kind, name in asked:
        with pytest.raises(UnknownName) as caught:
            load_suite(name, manager) if kind == "suites" else manager.get(kind, name)
        assert caught.value.hint == "The package 'gcd-of-theirs' offers it and is not installed here."
    with pytest.raises(UnknownName) as caught:
        load_suite("another", manager)
    assert "once its package is installed" in str(caught.value.hint)
    file.unlink()
    directory.known_packages.cache_clear()
    with pytest.raises(UnknownName):  # a missing file costs a hint, nothing else
        load_suite("table", manager)
    directory.known_packages.cache_clear()
