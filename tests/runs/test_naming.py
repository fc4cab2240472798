"""Decisions on clusters: what is accepted, what is refused, and what a model makes of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcdbench.core.errors import ConfigError
from gcdbench.models.model_card import Names
from gcdbench.runs.naming import Decisions, apply_decisions, check_decisions, parse_decisions
from gcdbench.runs.record import Record, SplitHeader

TIES = (0, 1, -1, -1, -1, -1)


def record(run_id: str = "r") -> Record:
    from pathlib import Path

    return Record(
        path=Path(),
        run_id=run_id,
        identity={},
        method="m",
        dataset="d",
        preset="p",
        protocol="q",
        seed=0,
        backbone="b",
        image_size=64,
        views="online",
        split=SplitHeader(old_classes=("polyps", "cecum")),
    )


def check(**decided: object) -> None:
    check_decisions(Decisions(run="r", **decided), record(), TIES)  # type: ignore[arg-type]


def test_what_is_accepted() -> None:
    check(clusters={2: "ulcer", 3: "dyed"}, merged={4: 3, 5: 0}, rejected=frozenset({2}))
    check(clusters={2: "ulcer", 3: "ulcer"}, merged={3: 2})
    check()


@pytest.mark.parametrize(
    "decided",
    [
        {"clusters": {6: "x"}},
        {"merged": {2: 6}},
        {"rejected": frozenset({-1})},
        {"clusters": {0: "x"}},
        {"merged": {1: 2}},
        {"rejected": frozenset({1})},
        {"merged": {2: 2}},
        {"merged": {2: 3, 3: 4, 4: 2}},
        {"clusters": {2: "x", 3: "x"}},
        {"clusters": {2: "polyps"}},
    ],
)
def test_what_is_refused(decided: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        check(**decided)


def test_names_of_another_run_are_refused() -> None:
    with pytest.raises(ConfigError, match="other"):
        check_decisions(Decisions(run="other"), record(), TIES)


@pytest.mark.parametrize(
    "text",
    [
        "run = 3",
        "clusters = {}",
        'run = "r"\nother = 1',
        'run = "r"\n[clusters.x]\nname = "a"',
        'run = "r"\n[clusters.2]\nname = ""',
        'run = "r"\n[clusters.2]\nname = "a\\nb"',
        'run = "r"\n[clusters.2]\nmerge_into = "3"',
        'run = "r"\n[clusters.2]\nmerge_into = true',
        'run = "r"\n[clusters.2]\nrejected = 1',
        'run = "r"\n[clusters.2]\ncolour = "red"',
        'run = "r"\n[clusters]\n2 = "a"',
        "not toml",
    ],
)
def test_files_that_are_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_decisions(text.encode(), "names.toml")


printable = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=20)


@given(
    st.dictionaries(st.integers(0, 40), printable),
    st.dictionaries(st.integers(0, 40), st.integers(0, 40)),
    st.frozensets(st.integers(0, 40)),
)
def test_decisions_survive_their_file(clusters: dict[int, str], merged: dict[int, int], rejected: frozenset) -> None:
    decisions = Decisions(run="r", clusters=clusters, merged=merged, rejected=rejected)
    assert parse_decisions(decisions.to_toml().encode(), "names.toml") == decisions


def test_merged_clusters_answer_as_one_and_share_their_fate() -> None:
    names = Names(known=TIES, classes=("polyps", "cecum"))
    decided = Decisions(
        run="r", clusters={2: "ulcer", 3: "ignored"}, merged={3: 2, 4: 3, 5: 0}, rejected=frozenset({2})
    )
    called, gone = apply_decisions(names, decided)
    assert called == {2: "ulcer", 3: "ulcer", 4: "ulcer", 5: "polyps"}
    assert gone == (2, 3, 4)
    unnamed, _ = apply_decisions(names, Decisions(run="r", merged={3: 2}))
    assert unnamed == {3: "cluster 2"}
