"""The real images, where GCDBENCH_DATA names a folder that has them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gcdbench.datasets.card import load_card
from gcdbench.datasets.catalogue import open_dataset
from gcdbench.datasets.integrity.dataset_findings import find_faults
from gcdbench.datasets.integrity.verify import verify
from gcdbench.datasets.protocols import named_protocol
from gcdbench.datasets.source import DatasetSource
from gcdbench.images.hashing import content_hashes, content_order, hex_digests
from gcdbench.images.image_store import prepare_store
from gcdbench.plugins.manager import get_manager
from gcdbench.splits.manifest import SplitManifest, make_split
from gcdbench.splits.protocol import Protocol

pytestmark = pytest.mark.skipif(not os.environ.get("GCDBENCH_DATA"), reason="GCDBENCH_DATA is not set")

Open = Callable[[str], DatasetSource]


@pytest.fixture
def real() -> Open:
    """Open a dataset below GCDBENCH_DATA, or skip."""

    def open_(name: str) -> DatasetSource:
        place = {"kvasir": "kvasir", "ham10000": "ham10000", "pbc": "pbc-mini"}.get(name, name.partition(":")[2])
        roots = [Path(root) for root in os.environ["GCDBENCH_DATA"].split(os.pathsep)]
        if not any((root / place).exists() for root in roots):
            pytest.skip(f"{place} is not in GCDBENCH_DATA")
        return open_dataset(name, get_manager())

    return open_


def split_of(source: DatasetSource, protocol: Protocol, cache: Path) -> SplitManifest:
    digests = content_hashes(source, cache, workers=1)
    order = content_order(digests, source.labels, source.keys)
    return make_split(
        dataset=source.card.name,
        class_names=source.card.classes,
        labels=source.labels[order],
        sha256=hex_digests(digests[order]),
        protocol=protocol,
        groups=None if source.groups is None else source.groups[order],
    )


def test_kvasir_is_complete(real: Open, shared_cache: Path) -> None:
    source = real("kvasir")
    report = verify(source, workers=2, cache=shared_cache)
    assert report.ok, report.to_text()
    assert report.images == 4000


def test_kvasirs_exact_duplicates_are_found(real: Open) -> None:
    report = find_faults(real("kvasir"), named_protocol("paper-stated", load_card("kvasir"), "kvasir"), workers=2)
    groups = {finding.kind: finding.groups for finding in report.findings}
    assert len(groups["exact-within-class"]) == 4
    assert "exact-across-classes" not in groups
    assert report.ok


@pytest.mark.parametrize(("protocol", "w"), [("paper-stated", 0.333), ("paper-implied", 0.444)])
def test_old_share_on_kvasir(real: Open, shared_cache: Path, protocol: str, w: float) -> None:
    split = split_of(real("kvasir"), named_protocol(protocol, load_card("kvasir"), "kvasir"), shared_cache)
    assert split.old_share == pytest.approx(w, abs=5e-4)


def test_kvasir_is_prepared_once(real: Open, shared_cache: Path) -> None:
    first = prepare_store(real("kvasir"), 128, shared_cache, workers=2)
    work: list[str] = []
    second = prepare_store(
        real("kvasir"), 128, shared_cache, workers=2, progress=lambda stage, done, total: work.append(stage)
    )
    assert work == []  # nothing was read or decoded again
    assert first.key == second.key
    assert first.pixels.shape == (4000, 146, 146, 3)
    assert 60 < float(first.pixels[::200].mean()) < 160


def test_no_lesion_of_ham10000_is_on_two_sides(real: Open, shared_cache: Path) -> None:
    source = real("ham10000")
    assert source.groups is not None
    assert len(np.unique(source.groups)) == 7470
    digests = content_hashes(source, shared_cache, workers=2)
    lesions = source.groups[content_order(digests, source.labels, source.keys)]

    def torn(protocol: Protocol) -> int:
        roles = split_of(source, protocol, shared_cache).roles
        _, lesion = np.unique(lesions, return_inverse=True)
        low, high = np.full(7470, 9), np.full(7470, -1)
        np.minimum.at(low, lesion, roles)
        np.maximum.at(high, lesion, roles)
        return int(np.sum(low != high))

    rules = named_protocol("half", load_card("ham10000"), "ham10000")
    assert torn(rules) == 0
    assert torn(replace(rules, keep_groups=False)) > 100


def test_blood_cells_and_path_patches_open(real: Open, tmp_path: Path) -> None:
    blood = real("pbc")
    assert np.bincount(blood.labels).tolist() == [300] * 8
    assert verify(blood, workers=2).ok
    patches = real("npz:pathmnist-718.npz")
    assert len(patches) == 718
    assert len(patches.card.classes) == 9
    store = prepare_store(patches, 28, tmp_path, workers=1)
    assert store.pixels.shape == (718, 32, 32, 3)
