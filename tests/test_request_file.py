"""Runs written down in a file: what the user writes, and what a stored run wrote."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import tomli_w

from gcdbench.core.errors import ConfigError
from gcdbench.plugins.manager import get_manager
from gcdbench.runs.plan import Plan, make_plan
from gcdbench.runs.request import Request
from gcdbench.runs.request_file import merge_request


def from_file(path: Path) -> Plan:
    return make_plan(merge_request(path, overrides={}, dataset_options={}), get_manager())


@pytest.mark.parametrize(
    "request_",
    [
        Request(method="simgcd", dataset="phantom", preset="smoke", seed=3),
        Request(method="dccl", dataset="phantom", preset="smoke", overrides={"training.momentum": "0.8"}),
        Request(method="pixels-kmeans", dataset="folder:some where/ünï", preset="laptop", k_policy="estimated"),
        Request(
            method="legogcd",
            dataset="kvasir",
            preset="laptop",
            protocol="paper-implied",
            overrides={"protocol.label_fraction": "0.30", "lr": "0.05", "weights": "none", "views": "online"},
        ),
        Request(
            method="ss-kmeans",
            dataset="phantom",
            preset="smoke",
            dataset_options={"n_per_class": "12"},
            overrides={"protocol.old_count": "3", "n_init": "2"},
        ),
    ],
    ids=lambda request: f"{request.method} on {request.dataset}",
)
def test_the_config_of_a_stored_run_describes_the_same_run(tmp_path: Path, request_: Request) -> None:
    plan = make_plan(request_, get_manager())
    file = tmp_path / "config.toml"
    file.write_text(tomli_w.dumps(plan.resolved()), encoding="utf-8")
    assert from_file(file) == plan


def test_an_option_replaces_what_followed_from_the_stored_one(tmp_path: Path) -> None:
    stored = Request(
        method="simgcd", dataset="phantom", preset="laptop", overrides={"lr": "0.7", "protocol.label_fraction": "0.3"}
    )
    file = tmp_path / "config.toml"
    file.write_text(tomli_w.dumps(make_plan(stored, get_manager()).resolved()))

    def with_options(**given: str) -> Plan:
        return make_plan(merge_request(file, overrides={}, dataset_options={}, **given), get_manager())

    smoke = with_options(preset="smoke")
    expected = make_plan(Request(method="simgcd", dataset="phantom", preset="smoke"), get_manager())
    assert (smoke.settings, smoke.training) == (expected.settings, expected.training)
    assert with_options(protocol="by-count").protocol.label_fraction == 0.5
    assert with_options(method="pixels-kmeans").protocol.label_fraction == 0.3
    assert with_options(preset="laptop").training.lr == 0.7


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("method = 3", "'method' must be a string"),
        ('dataset = ["phantom"]', "'dataset' must be a string"),
        ("variant = 1", "'variant' must be a string"),
        ("set = 3", "'set' must be a table"),
        ("dataset_set = 3", "'dataset_set' must be a table"),
        ("seed = true", "'seed' must be a whole number"),
        ("seed = 1.5", "'seed' must be a whole number"),
        ("k = 'guessed'", "'k' must be 'known' or 'estimated'"),
        ("training = 5", "'training' must be a table"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "run.toml"
    table = tomllib.loads(text)
    file.write_text(tomli_w.dumps({"method": "kmeans", "dataset": "phantom", **table}))
    with pytest.raises(ConfigError, match=said):
        from_file(file)


def test_a_changed_protocol_is_named_by_its_values_not_by_their_spelling() -> None:
    def name(**rules: str) -> str:
        overrides = {f"protocol.{key}": value for key, value in rules.items()}
        request = Request(method="pixels-kmeans", dataset="phantom", overrides=overrides)
        return make_plan(request, get_manager()).protocol.name

    assert name(label_fraction="0.30") == name(label_fraction="3e-1") == "half+label_fraction=0.3"
    assert name(label_fraction="0.5") == "half"
    assert name(label_fraction="0.5", split_seed="1") == "half", "splits of one protocol are its replicates"
    assert name(label_fraction="0.3", split_seed="1") == "half+label_fraction=0.3"


def test_the_command_line_wins_over_the_file_of_a_variant(tmp_path: Path) -> None:
    stored = Request(method="simgcd", dataset="phantom", preset="smoke", variant="paper-equations")
    file = tmp_path / "config.toml"
    file.write_text(tomli_w.dumps(make_plan(stored, get_manager()).resolved()))
    for name in ("contrastive", "config.contrastive"):
        plan = make_plan(merge_request(file, overrides={name: "code"}, dataset_options={}), get_manager())
        assert plan.config.contrastive == "code"
