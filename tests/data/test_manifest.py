"""Splits: roles, shares, groups, and independence of names and order."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcdbench.core.errors import ConfigError, DataError, UnknownName
from gcdbench.datasets.card import load_card
from gcdbench.datasets.protocols import named_protocol
from gcdbench.splits.manifest import LABELLED, TEST, UNLABELLED, make_split
from gcdbench.splits.protocol import Protocol, generic_protocol


def hashes(n: int, salt: str = "") -> list[str]:
    return sorted(hashlib.sha256(f"{salt}{i}".encode()).hexdigest() for i in range(n))


def kvasir_like(protocol: Protocol):
    labels = np.random.default_rng(3).permutation(np.repeat(np.arange(8), 500))
    return make_split(
        dataset="kvasir",
        class_names=[f"class-{c}" for c in range(8)],
        labels=labels,
        sha256=hashes(4000),
        protocol=protocol,
    )


@pytest.mark.parametrize(
    ("name", "labelled", "w"), [("paper-stated", 1000, 1 / 3), ("paper-implied", 400, 1600 / 3600)]
)
def test_old_share_of_the_papers_protocols_on_kvasir(name: str, labelled: int, w: float) -> None:
    split = kvasir_like(named_protocol(name, load_card("kvasir"), "kvasir"))
    assert len(split.ids(LABELLED)) == labelled
    assert split.old_share == pytest.approx(w, abs=1e-12)
    per_class = np.bincount(split.labels[split.ids(LABELLED)], minlength=8)
    assert per_class.tolist() == [labelled // 4] * 4 + [0] * 4


@pytest.mark.parametrize(
    ("name", "counts", "old"),
    [
        ("half", [5] * 5, (0, 1, 2)),
        ("alternate", [5] * 8, (0, 2, 4, 6)),
        ("alternate", [5] * 5, (0, 2, 4)),
        ("alternate", [5], (0,)),
        ("by-count", [1, 9, 3, 9], (1, 3)),
    ],
)
def test_old_classes_of_the_protocols_for_any_dataset(name: str, counts: list[int], old: tuple[int, ...]) -> None:
    assert generic_protocol(name).old_classes(counts) == old


def test_more_old_classes_than_every_second_are_refused() -> None:
    with pytest.raises(ConfigError, match="only 2 old classes"):
        Protocol(name="p", old_rule="alternate", old_count=3).old_classes([1, 1, 1, 1])


def test_old_classes_may_be_named_and_keep_card_order() -> None:
    named = Protocol(name="p", old_rule="named", old_names=("c", "a"))
    assert named.old_classes([1, 1, 1], ["a", "b", "c"]) == (0, 2)
    with pytest.raises(UnknownName, match="no class named 'c'"):
        named.old_classes([1, 1], ["a", "b"])
    for wrong in ({"old_rule": "named"}, {"old_names": ("a",)}):
        with pytest.raises(ConfigError, match="give both"):
            Protocol(name="p", **wrong)


def test_by_count_takes_the_largest_classes_and_keeps_card_order() -> None:
    labels = np.repeat([0, 1, 2, 3], [5, 40, 10, 20])
    split = make_split(
        dataset="d",
        class_names=["a", "b", "c", "d"],
        labels=labels,
        sha256=hashes(75),
        protocol=generic_protocol("by-count"),
    )
    assert split.classes == ("b", "d", "a", "c")
    assert split.k_old == 2


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 6), st.integers(2, 40), st.floats(0.1, 1.0), st.booleans(), st.integers(0, 3), st.integers(0, 10**6)
)
def test_every_sample_has_one_role_and_new_classes_no_label(
    classes: int, per_class: int, fraction: float, stratified: bool, split_seed: int, shuffle: int
) -> None:
    n = classes * per_class
    labels = np.random.default_rng(shuffle).permutation(np.repeat(np.arange(classes), per_class))
    partition = np.where(np.arange(n) % 5 == 0, "test", "train") if per_class > 10 else None
    split = make_split(
        dataset="d",
        class_names=[str(c) for c in range(classes)],
        labels=labels,
        sha256=hashes(n, str(shuffle)),
        protocol=Protocol(name="half", label_fraction=fraction, stratified=stratified, split_seed=split_seed),
        partition=partition,
    )
    parts = [split.ids(role) for role in (LABELLED, UNLABELLED, TEST)]
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(n))
    assert (split.labels[parts[0]] < split.k_old).all()
    assert np.array_equal(parts[2], np.flatnonzero(partition == "test") if partition is not None else [])
    data = split.data(np.zeros((n, 4, 4, 3), np.uint8))
    assert np.array_equal(data.labels, split.labels[parts[0]])
    old_train = np.sum((labels < split.k_old) & (np.ones(n, bool) if partition is None else partition == "train"))
    assert abs(len(parts[0]) - fraction * old_train) <= split.k_old


def test_groups_stay_on_one_side_where_a_naive_split_tears_them() -> None:
    rng = np.random.default_rng(0)
    group_of = np.repeat(np.arange(120), rng.integers(1, 6, 120))
    labels = (group_of % 4).astype(np.int64)
    order = rng.permutation(len(labels))
    arguments = {
        "dataset": "lesions",
        "class_names": list("abcd"),
        "labels": labels[order],
        "sha256": hashes(len(labels)),
        "groups": np.char.add("lesion-", group_of[order].astype(str)),
    }

    def torn(split) -> int:
        return sum(len(set(split.roles[split.groups == g].tolist())) > 1 for g in np.unique(split.groups))

    assert torn(make_split(**arguments, protocol=Protocol(name="half"))) == 0
    assert torn(make_split(**arguments, protocol=Protocol(name="half", keep_groups=False))) > 5
    kept = make_split(**arguments, protocol=Protocol(name="half"))
    shares = [np.mean(kept.roles[kept.labels == c] == 0) for c in range(2)]
    assert shares == pytest.approx([0.5, 0.5], abs=0.06)


def test_a_group_with_a_new_class_image_is_never_labelled() -> None:
    labels = np.array([0, 1, 0, 0, 1, 1])
    groups = np.array(["p", "p", "q", "r", "s", "t"])
    split = make_split(
        dataset="d",
        class_names=["a", "b"],
        labels=labels,
        sha256=hashes(6),
        groups=groups,
        protocol=Protocol(name="half"),
    )
    assert 0 not in split.ids(LABELLED)
    assert len(split.ids(LABELLED)) >= 1


def test_group_names_leave_no_trace() -> None:
    labels = np.array([0, 0, 0, 0, 1, 1])
    names = np.array(["x", "x", "y", "z", "u", "v"])
    renamed = np.array(["9", "9", "1", "5", "0", "2"])
    common = {"dataset": "d", "class_names": ["a", "b"], "labels": labels, "sha256": hashes(6)}
    first = make_split(**common, groups=names, protocol=Protocol(name="half"))
    second = make_split(**common, groups=renamed, protocol=Protocol(name="half"))
    assert first.to_text() == second.to_text()


def test_split_seeds_differ_and_repeat() -> None:
    first, second = (kvasir_like(Protocol(name="half", split_seed=s)) for s in (0, 1))
    assert first.sha == kvasir_like(Protocol(name="half", split_seed=0)).sha
    assert not np.array_equal(first.roles, second.roles)


def test_the_manifest_is_the_same_in_another_process() -> None:
    script = (
        "from tests.data.test_manifest import kvasir_like\n"
        "from gcdbench.datasets.card import load_card\n"
        "from gcdbench.datasets.protocols import named_protocol\n"
        "print(kvasir_like(named_protocol('paper-stated', load_card('kvasir'), 'kvasir')).sha)"
    )
    output = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.strip()
    assert output == kvasir_like(named_protocol("paper-stated", load_card("kvasir"), "kvasir")).sha


def test_impossible_splits_are_refused() -> None:
    with pytest.raises(DataError, match="no images"):
        make_split(
            dataset="d", class_names=["a"], labels=np.array([], np.int64), sha256=[], protocol=Protocol(name="half")
        )
    with pytest.raises(DataError, match="old class 'a'"):
        make_split(
            dataset="d",
            class_names=["a", "b", "c", "d"],
            labels=np.array([1, 2, 3]),
            sha256=hashes(3),
            protocol=Protocol(name="half"),
        )
    with pytest.raises(DataError, match="leaves no image without a label"):
        make_split(
            dataset="d",
            class_names=["a", "b"],
            labels=np.array([0, 0, 1, 1]),
            sha256=hashes(4),
            protocol=Protocol(name="all", old_count=2, label_fraction=1.0),
        )
    with pytest.raises(ConfigError, match="label_fraction"):
        Protocol(name="half", label_fraction=0.0)
