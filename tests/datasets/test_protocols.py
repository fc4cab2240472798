"""Protocols of datasets: what cards and rules for any dataset give, and what they gave when stored runs were made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcdbench.core.errors import ConfigError
from gcdbench.datasets.card import load_card
from gcdbench.datasets.protocols import card_of, default_protocol, describe_protocols, named_protocol, protocol_names
from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.plan import make_plan
from gcdbench.runs.request import Request
from gcdbench.splits.manifest import make_split
from gcdbench.splits.protocol import Protocol, renamed
from gcdbench.splits.split_file import parse_split

PUBLISHED = {"kvasir": 4, "organamnist": 5, "organcmnist": 5, "nct-crc-he-100k": 5}
"""Datasets with protocols of a paper, and how many old classes these have."""

CARD = """
name = "ours"
title = "Ours"
modality = "m"
licence = "l"
citation = "c"
source = "s"
layout = "y"
default_protocol = "ours-2025"

[protocols.ours-2025]
old_classes = ["c", "a"]
label_fraction = 0.25
citation = "We, 2025"

[[classes]]
name = "a"
[[classes]]
name = "b"
[[classes]]
name = "c"
[[classes]]
name = "d"
[[classes]]
name = "e"
"""


@pytest.fixture(scope="module")
def manager() -> PluginManager:
    return PluginManager(points=[])


def identity_card(**changes: Any) -> dict[str, Any]:
    """What a protocol's part of an identity looked like when the stored runs were made, field by field."""
    usual = {
        "name": "half",
        "old_rule": "first",
        "old_count": None,
        "label_fraction": 0.5,
        "stratified": True,
        "keep_groups": True,
        "split_seed": 0,
        "k_policy": "known",
        "evaluation": "unlabelled",
        "match_rule": "v2",
        "epoch_selection": "last",
    }
    return {**usual, **changes}


def test_no_protocol_of_any_dataset_differs_from_what_identities_hold(manager: PluginManager) -> None:
    for dataset in manager.names("datasets"):
        if "natural" in manager.get("datasets", dataset).tags:
            continue  # younger than any stored run
        card, count = card_of(dataset, manager), PUBLISHED.get(dataset)
        expected = {
            "half": identity_card(),
            "alternate": identity_card(name="alternate", old_rule="alternate"),
            "by-count": identity_card(name="by-count", old_rule="by-count", old_count=count),
        }
        if count is not None:
            share = 0.2 if dataset == "kvasir" else 0.5
            expected["paper-stated"] = identity_card(name="paper-stated", old_count=count)
            expected["paper-implied"] = identity_card(name="paper-implied", old_count=count, label_fraction=share)
        younger = {"drawn"}  # than any stored run
        made = {
            name: named_protocol(name, card, dataset).card() for name in protocol_names(card) if name not in younger
        }
        assert made == expected, dataset
        assert all(list(found) == list(identity_card()) for found in made.values())
        assert default_protocol(card) == ("half" if count is None else "paper-stated")


def test_the_default_is_the_cards_whatever_is_installed(manager: PluginManager) -> None:
    """The same with a plugin that registers everything under the sun, and without a registry at all."""
    plan = make_plan(Request(method="simgcd", dataset="kvasir", preset="smoke"), manager)
    assert plan.protocol.name == default_protocol(load_card("kvasir")) == "paper-stated"
    plan = make_plan(Request(method="simgcd", dataset="folder:somewhere", preset="smoke"), manager)
    assert plan.protocol.name == "half"


def test_an_unknown_protocol_is_answered_with_what_the_dataset_has(manager: PluginManager) -> None:
    for dataset, has in (("phantom", "by-count, half, alternate"), ("kvasir", "paper-stated, paper-implied, by-count")):
        with pytest.raises(ConfigError) as caught:
            make_plan(Request(method="simgcd", dataset=dataset, preset="smoke", protocol="theirs"), manager)
        assert f"'{dataset}' has no protocol 'theirs'; it has {has}" in caught.value.message


@pytest.fixture
def ours(tmp_path: Path) -> PluginManager:
    """A third party's dataset with a card of its own."""
    (tmp_path / "card.toml").write_text(CARD)
    (tmp_path / "their_dataset.py").write_text(
        "from pathlib import Path\n"
        "from gcdbench.plugins import DatasetSpec, hookimpl\n"
        "@hookimpl\n"
        "def gcdbench_datasets():\n"
        "    card = str(Path(__file__).with_name('card.toml'))\n"
        "    return [DatasetSpec(name='ours', api=2, factory='nowhere:make', card=card)]\n"
    )
    return PluginManager(points=[], files=[tmp_path / "their_dataset.py"])


def test_a_third_partys_card_brings_its_protocol_with_named_classes(ours: PluginManager) -> None:
    plan = make_plan(Request(method="simgcd", dataset="ours", preset="smoke"), ours)
    assert plan.protocol == Protocol(
        name="ours-2025", old_rule="named", old_names=("c", "a"), label_fraction=0.25, old_count=None
    )
    assert plan.protocol.card()["old_names"] == ["c", "a"]
    assert plan.resolved()["protocol"]["old_names"] == ["c", "a"]
    largest = make_plan(Request(method="simgcd", dataset="ours", preset="smoke", protocol="by-count"), ours)
    assert largest.protocol.old_count == 2
    assert "old_names" not in largest.resolved()["protocol"]
    card = card_of("ours", ours)
    assert card is not None
    assert "old: c, a, 25 % labelled (We, 2025)" in describe_protocols(card)["ours-2025"]


def test_a_split_by_named_classes_survives_its_file(ours: PluginManager) -> None:
    protocol = named_protocol(None, card_of("ours", ours), "ours")
    made = make_split(
        dataset="ours",
        class_names=list("abcde"),
        labels=np.arange(40) % 5,
        sha256=[f"{i:064x}" for i in range(40)],
        protocol=protocol,
    )
    assert made.classes[:2] == ("a", "c")
    assert parse_split(made.to_text(), "x").protocol == protocol
    assert parse_split(made.to_text(), "x").sha == made.sha


def test_a_changed_rule_is_in_the_name() -> None:
    half = Protocol(name="half")
    changed = Protocol(name="half", old_rule="named", old_names=("a", "c"))
    assert renamed(half, changed).name == "half+old_names=a|c,old_rule=named"
    assert renamed(half, half).name == "half"
