"""The suite is complete, its published numbers do not contradict themselves, and its table is printed."""

from __future__ import annotations

import csv
import json
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from click.testing import CliRunner

PACKAGE = Path(__file__).resolve().parents[1]
REPORTED = PACKAGE / "gcdbench_natural" / "study" / "reported" / "published.csv"

OLD_SHARE = {"cifar10": 1 / 3, "cifar100": 2 / 3, "imagenet-100": 1 / 3, "cub-200-2011": 1 / 3, "fgvc-aircraft": 1 / 3}
"""Old classes' share of the unlabelled images where classes are of one size: half of old : half of old + new."""

AIRCRAFT = 0x89000B28F8731FAF279EB4C3F
"""The published old classes of FGVC-Aircraft, as bits."""


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator:
    """``gcdbench`` with this package, on a machine without data."""
    from gcdbench.cli.main import command
    from gcdbench.plugins.manager import get_manager

    if not entry_points(group="gcdbench", name="natural"):  # not installed: as a local plugin file
        monkeypatch.syspath_prepend(str(PACKAGE))
        monkeypatch.setenv("GCDBENCH_PLUGINS", str(PACKAGE / "gcdbench_natural" / "plugin.py"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("GCDBENCH_RUNS", str(tmp_path / "runs"))
    monkeypatch.delenv("GCDBENCH_DATA", raising=False)
    get_manager.cache_clear()
    yield lambda *arguments: CliRunner().invoke(command, [str(a) for a in arguments], catch_exceptions=False)
    get_manager.cache_clear()
    for name in [name for name in sys.modules if name.startswith("gcdbench_natural")]:
        del sys.modules[name]


def rows() -> list[dict[str, str]]:
    with REPORTED.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_published_number_has_a_source_and_a_column() -> None:
    suite = tomllib.loads((REPORTED.parents[1] / "main.toml").read_text(encoding="utf-8"))
    datasets = {column["dataset"] for column in suite["columns"]}
    methods = {row["reported"] for row in suite["rows"]}
    assert {row["dataset"] for row in rows()} == datasets
    assert {row["method"] for row in rows()} == methods
    assert all(len(row["source"]) > 10 for row in rows())
    keys = [(row["method"], row["dataset"]) for row in rows()]
    assert len(set(keys)) == len(keys) == 21


def test_published_rows_are_possible() -> None:
    """All lies between Old and New, and is their mean by share where the shares are known, within rounding."""
    for row in rows():
        total, old, new = (float(row[key]) for key in ("all", "old", "new"))
        assert min(old, new) - 0.1 <= total <= max(old, new) + 0.1
        if (share := OLD_SHARE.get(row["dataset"])) is not None:
            assert abs(total - (share * old + (1 - share) * new)) < 0.25, row


def test_the_table_compares_with_what_was_published(cli) -> None:
    result = cli("table", "natural/main")
    assert result.exit_code == 0, result.output
    for text in ("SimGCD", "LegoGCD", "97.1", "63.8", "Herbarium 19"):
        assert text in result.output


def test_a_sweep_says_what_is_missing(cli, tmp_path: Path) -> None:
    sweep = ("sweep", "natural/main", "--preset", "laptop", "--dry-run")
    asked = "data split import --format ssb FILE fgvc-aircraft"
    result = cli(*sweep)
    assert "'gcdbench data fetch cifar10' gets it" in result.output
    assert result.output.count(asked) == 1
    old = [position for position in range(100) if AIRCRAFT >> position & 1]
    split = {"known_classes": old, "unknown_classes": {"Hard": sorted(set(range(100)) - set(old))}}
    (tmp_path / "aircraft.json").write_text(json.dumps(split))
    imported = cli("data", "split", "import", "--format", "ssb", tmp_path / "aircraft.json", "fgvc-aircraft")
    assert imported.exit_code == 0, imported.output
    result = cli(*sweep)
    assert asked not in result.output
    assert "'gcdbench data fetch fgvc-aircraft' gets it" in result.output


def test_the_directory_of_plugins_says_what_the_package_offers(cli) -> None:
    """So that 'gcdbench table natural/main' and '--preset dino-vitb16' name the package where it is not installed."""
    from gcdbench_natural import plugin

    directory = PACKAGE.parent / "directory.toml"
    if not directory.is_file():
        pytest.skip("the directory of plugins is part of the repository")
    listed = tomllib.loads(directory.read_text(encoding="utf-8"))["gcdbench-natural"]
    assert listed == {
        "presets": [preset.name for preset in plugin.gcdbench_presets()],
        "suites": [suite.name for suite in plugin.gcdbench_suites()],
    }


def test_the_preset_is_what_the_published_scripts_share(cli) -> None:
    """Written down from the scripts: a default that changes must not change this setting with it."""
    from gcdbench.plugins.manager import get_manager
    from gcdbench.runs.plan import make_plan
    from gcdbench.runs.request import Request

    request = Request(method="simgcd", dataset="cifar100", preset="dino-vitb16")
    plan = make_plan(request, get_manager())
    assert (plan.settings.backbone, plan.settings.weights) == ("dino-vitb16", None)
    assert (plan.settings.image_size, plan.settings.views, plan.settings.augmentation) == (224, "online", "geometric")
    training = plan.training
    assert (training.epochs, training.batch_size, training.lr, training.momentum) == (200, 128, 0.1, 0.9)
    assert (training.weight_decay, training.lr * training.min_lr_ratio) == (5e-5, pytest.approx(1e-4))


def test_rows_have_the_settings_of_the_published_scripts(cli) -> None:
    from gcdbench.plugins.manager import get_manager
    from gcdbench.reporting.suites.model import request_for
    from gcdbench.reporting.suites.read import load_suite

    suite = load_suite("natural/main", get_manager())
    preset = suite.preset("dino-vitb16")
    weights = {
        (row.method, column.dataset): request_for(suite, row, column, preset, 0).overrides.get("memax_weight")
        for row in suite.rows
        for column in suite.columns
    }
    assert {weights["gcd", column.dataset] for column in suite.columns} == {None}
    assert (weights["simgcd", "cifar100"], weights["legogcd", "cifar100"]) == (4.0, 2.0)
    assert {weights[method, "cub-200-2011"] for method in ("simgcd", "legogcd")} == {2.0}
    assert {weights[method, "herbarium-19"] for method in ("simgcd", "legogcd")} == {1.0}
