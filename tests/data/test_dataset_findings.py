"""Audit, verification and the check before a run, on folders with known faults."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from gcdbench.datasets.integrity import blocking_issues
from gcdbench.datasets.integrity.blocking import mixed
from gcdbench.datasets.integrity.dataset_findings import find_faults, group_findings
from gcdbench.datasets.integrity.duplicates import exact_groups, hamming, near_groups, near_pairs
from gcdbench.datasets.integrity.report import Report
from gcdbench.datasets.integrity.scan import perceptual_hash
from gcdbench.datasets.integrity.verify import verify
from gcdbench.datasets.source import DatasetRequest, DatasetSource
from gcdbench.datasets.sources.folder import make_folder as open_folder
from gcdbench.datasets.sources.folder import scan_folder
from gcdbench.images.image_store import prepare_store
from gcdbench.splits.protocol import Protocol
from tests.data.conftest import noise_image

HALF = Protocol(name="half")


def opened(root: Path) -> DatasetSource:
    return open_folder(DatasetRequest(name="folder", argument=str(root)))


def kinds(report: Report) -> dict[str, str]:
    """kind -> all that is said about it."""
    said: dict[str, str] = {}
    for finding in report.findings:
        text = finding.message + " " + " ".join(name for group in finding.groups for name in group)
        said[finding.kind] = said.get(finding.kind, "") + " " + text
    return said


@pytest.fixture
def hostile(make_folder) -> Path:
    """A folder with everything that a user's folder may have in it."""
    root = make_folder({"a": 6, "b": 6}, suffix=".jpg")
    shutil.copy(root / "a" / "0000.jpg", root / "b" / "copied.jpg")
    (root / "a" / "truncated.jpg").write_bytes((root / "a" / "0001.jpg").read_bytes()[:-200])
    (root / "a" / "empty.jpg").write_bytes(b"")
    shutil.copy(root / "a" / "0002.jpg", root / "a" / ".DS_1.jpg")
    Image.new("RGB", (1, 1), (9, 9, 9)).save(root / "b" / "dot.png")
    deep = np.random.default_rng(1).integers(0, 65536, (30, 30), dtype=np.uint16)
    Image.fromarray(deep).save(root / "b" / "deep.png")
    noise_image(801).convert("CMYK").save(root / "b" / "cmyk.jpg")
    frames = [noise_image(seed).convert("P") for seed in (900, 901, 902)]
    frames[0].save(root / "b" / "moving.gif", save_all=True, append_images=frames[1:])
    os.symlink(root, root / "b" / "loop")
    noise_image(803, 20_000, 40).save(root / "b" / "wide.png")
    return root


def test_a_hostile_folder_is_audited_and_every_fault_is_named(hostile: Path) -> None:
    report = find_faults(opened(hostile), HALF, workers=1)
    said = kinds(report)
    assert {"a/0000.jpg", "b/copied.jpg"} <= set(said["exact-across-classes"].replace("(", " ").split())
    assert "a/truncated.jpg" in said["unreadable"]
    assert "a/empty.jpg (the file is empty)" in said["unreadable"]
    assert "a/.DS_1.jpg" in said["ignored"]
    assert "b/loop" in said["ignored"]
    assert "b/dot.png (1 x 1)" in said["size"]
    assert "b/wide.png (20000 x 40)" in said["size"]
    assert "b/deep.png" in said["mode"]
    assert "b/cmyk.jpg" in said["mode"]
    assert "b/moving.gif" in said["frames"]
    assert "b/dot.png" in said["blank"]
    assert not report.ok
    text = report.to_text(shown=99)
    for name in ("copied", "truncated", "empty", ".DS_1", "dot", "deep", "cmyk", "moving", "loop", "wide"):
        assert name in text
    levels = {finding.kind: finding.level for finding in report.findings}
    assert levels["exact-across-classes"] == levels["unreadable"] == "error"
    assert levels["size"] == levels["mode"] == "warning"


def test_a_hostile_folder_is_the_same_through_worker_processes(hostile: Path, make_folder) -> None:
    for index in range(130):
        noise_image(5000 + index).save(hostile / "a" / f"more{index}.jpg")
    one, two = (find_faults(opened(hostile), HALF, workers=workers) for workers in (1, 2))
    assert one.findings == two.findings


def test_a_clean_folder_has_no_findings(make_folder) -> None:
    report = find_faults(opened(make_folder({"a": 8, "b": 8})), HALF, workers=1)
    assert report.findings == ()
    assert report.ok
    assert report.facts["classes"] == {"a": 8, "b": 8}


def test_a_deep_colour_png_is_found_although_pillow_hides_it(make_folder) -> None:
    import zlib

    root = make_folder({"a": 3, "b": 3})

    def chunk(kind: bytes, body: bytes) -> bytes:
        return len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")

    size = 20
    header = size.to_bytes(4, "big") * 2 + bytes([16, 2, 0, 0, 0])
    rows = b"".join(b"\0" + np.random.default_rng(row).bytes(size * 6) for row in range(size))
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    (root / "a" / "deep.png").write_bytes(data)
    assert "a/deep.png" in kinds(find_faults(opened(root), HALF, workers=1))["mode"]


def test_near_duplicates_survive_recompression_and_resizing(make_folder) -> None:
    root = make_folder({"a": 20, "b": 20})
    original = Image.open(root / "a" / "0003.png")
    original.resize((70, 56), Image.Resampling.BICUBIC).save(root / "a" / "larger.jpg", quality=85)
    Image.open(root / "b" / "0007.png").point(lambda value: value * 0.9 + 8).save(root / "a" / "darker.jpg", quality=80)
    report = find_faults(opened(root), HALF, workers=1)
    groups = {finding.kind: finding.groups for finding in report.findings}
    assert groups["near-within-class"] == (("a/0003.png", "a/larger.jpg"),)
    assert groups["near-across-classes"] == (("a/darker.jpg (a)", "b/0007.png (b)"),)
    assert report.ok  # they look alike: a warning, not an error


def test_blank_images_are_reported_once_and_not_as_duplicates_of_each_other(make_folder) -> None:
    root = make_folder({"a": 4, "b": 4})
    for number, label in enumerate("aab"):
        Image.new("RGB", (40, 32), (number, 0, 0)).save(root / label / f"flat{number}.png")
    said = kinds(find_faults(opened(root), HALF, workers=1))
    assert set(said) == {"blank"}
    assert all(f"flat{number}" in said["blank"] for number in range(3))


def test_imbalance_and_empty_classes(make_folder) -> None:
    root = make_folder({"a": 44, "b": 4})
    assert "imbalance" in kinds(find_faults(opened(root), HALF, workers=1))
    source = opened(root)
    wider = replace(source, card=replace(source.card, classes=("a", "b", "c")))
    assert "class c" in kinds(find_faults(wider, HALF, workers=1))["empty-class"]


def test_torn_groups_are_errors(make_folder) -> None:
    source = opened(make_folder({"a": 8, "b": 8}))
    grouped = replace(source, groups=np.repeat(["p1", "p2", "p3", "p4", "q1", "q2", "q3", "q4"], 2))
    naive = replace(HALF, keep_groups=False)
    assert find_faults(grouped, HALF, workers=1).ok
    torn = [
        finding for finding in find_faults(grouped, naive, workers=1).findings if finding.kind == "groups-across-roles"
    ]
    assert torn
    assert torn[0].level == "error"
    for group in torn[0].groups:
        assert len({name.split(" ")[1] for name in group}) == 2


def test_a_grouping_that_this_copy_does_not_have_is_a_warning(make_folder) -> None:
    source = opened(make_folder({"a": 2, "b": 2}))
    told = replace(source, card=replace(source.card, grouping="patient"))
    assert [finding.level for finding in group_findings(told, np.array(["unlabelled"] * 4))] == ["warning"]


# ---- before a run


def test_blocking_issues(make_folder, cache: Path) -> None:
    root = make_folder({"a": 6, "b": 6})
    clean = opened(root)
    store = prepare_store(clean, 16, cache, workers=1)
    roles = np.array(["labelled", "unlabelled"] * 6)
    assert blocking_issues(clean, store, roles) == []

    grouped = replace(clean, groups=np.array([f"p{i // 2}" for i in range(12)]))
    by_row = grouped.groups[store.order]
    whole = np.array(["labelled" if name in ("p0", "p4") else "unlabelled" for name in by_row])
    assert blocking_issues(grouped, store, whole) == []
    torn = whole.copy()
    torn[int(np.flatnonzero(by_row == "p4")[0])] = "test"
    issues = blocking_issues(grouped, store, torn)
    assert len(issues) == 1
    assert "p4" in issues[0]
    assert "labelled, test" in issues[0]

    shutil.copy(root / "a" / "0000.png", root / "b" / "same.png")
    shutil.copy(root / "a" / "0001.png", root / "a" / "same.png")  # within its class: not blocking
    dirty = opened(root)
    store = prepare_store(dirty, 16, cache, workers=1)
    issues = blocking_issues(dirty, store, np.array(["unlabelled"] * 14))
    assert len(issues) == 1
    assert "a/0000.png (a)" in issues[0]
    assert "b/same.png (b)" in issues[0]
    unused = np.where(np.array([dirty.keys[i] == "b/same.png" for i in store.order]), "", "unlabelled")
    assert blocking_issues(dirty, store, unused) == []


def test_a_partial_copy_is_a_blocking_issue(make_folder, cache: Path) -> None:
    source = opened(make_folder({"a": 3, "b": 2}))
    told = replace(source, card=replace(source.card, counts=(3, 3)))
    store = prepare_store(told, 16, cache, workers=1)
    assert blocking_issues(told, store, np.array(["unlabelled"] * 5)) == [
        "class b has 2 training images, the card says 3"
    ]


# ---- verification


def test_verify_against_the_card(make_folder, tmp_path: Path) -> None:
    root = make_folder({"a": 3, "b": 2})
    source = opened(root)
    card = replace(source.card, counts=(3, 2), samples={"train": 5})
    assert verify(replace(source, card=card), workers=1).ok
    wrong = verify(replace(source, card=replace(card, counts=(3, 4))), workers=1)
    assert [finding.message for finding in wrong.findings if finding.level == "error"] == [
        "class b has 2 training images, the card says 4"
    ]
    (root / "a" / "0000.png").write_bytes(b"\x89PNG")
    noise_image(3).convert("CMYK").save(root / "b" / "0001.tif")
    (root / "b" / "0001.png").unlink()
    broken = kinds(verify(scan_folder(root, card), workers=1))
    assert "a/0000.png" in broken["unreadable"]
    assert "b/0001.tif" in broken["mode"]


def test_verify_knows_a_missing_test_part_and_a_wrong_checksum(make_folder, tmp_path: Path) -> None:
    root = make_folder({"a": 3, "b": 2})
    source = opened(root)
    archive = tmp_path / "published.zip"
    archive.write_bytes(b"not what was published")
    told = replace(
        source,
        card=replace(source.card, counts=(3, 2), test_counts=(1, 1), checksums={"published.zip": "md5:" + "0" * 32}),
    )
    report = verify(told, workers=1)
    levels = {finding.kind: finding.level for finding in report.findings}
    assert levels == {"counts": "warning", "checksum": "error"}


# ---- the searches behind it


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 2**128 - 1), min_size=1, max_size=30),
    st.lists(st.tuples(st.integers(0, 29), st.sets(st.integers(0, 127), max_size=8)), max_size=20),
    st.integers(0, 7),
)
def test_near_pairs_are_those_of_a_double_loop(numbers: list[int], changed: list, bits: int) -> None:
    """Random hashes are far apart, so close ones are made by flipping a few bits of others."""
    for position, flips in changed:
        numbers.append(numbers[position % len(numbers)] ^ sum(1 << bit for bit in flips))
    numbers = sorted(set(numbers))
    array = np.array([[number >> 64, number & (2**64 - 1)] for number in numbers], dtype=np.uint64)
    expected = {
        (i, j)
        for i in range(len(numbers))
        for j in range(i + 1, len(numbers))
        if (numbers[i] ^ numbers[j]).bit_count() <= bits
    }
    left, right = near_pairs(array, bits)
    assert set(zip(left.tolist(), right.tolist(), strict=True)) == expected
    for i, j in list(expected)[:5]:
        assert hamming(array[[i]], array[[j]])[0] == (numbers[i] ^ numbers[j]).bit_count()


def test_near_groups_join_chains_and_equal_hashes() -> None:
    hashes = np.array([[0, 0], [0, 0], [0, 7], [0, 63], [2**63, 2**62 + 12345678901]], dtype=np.uint64)
    assert [group.tolist() for group in near_groups(hashes, 3)] == [[0, 1, 2, 3]]
    assert near_groups(np.empty((0, 2), dtype=np.uint64)) == []
    with pytest.raises(ValueError, match="at most 7"):
        near_groups(hashes, 8)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=40))
def test_mixed_groups_are_those_of_a_loop(pairs: list[tuple[int, int]]) -> None:
    group = np.array([g for g, _ in pairs], dtype=np.int64)
    value = np.array([v for _, v in pairs], dtype=np.int64)
    expected = [
        [i for i, (g, _) in enumerate(pairs) if g == name]
        for name in sorted({g for g, _ in pairs})
        if len({v for g, v in pairs if g == name}) > 1
    ]
    assert [members.tolist() for members in mixed(group, value)] == expected


def test_exact_groups() -> None:
    digests = np.zeros((5, 32), dtype=np.uint8)
    digests[[1, 3], 31] = 4
    digests[4, 0] = 1
    assert sorted(group.tolist() for group in exact_groups(digests)) == [[0, 2], [1, 3]]


def test_the_perceptual_hash_reads_brightness_steps() -> None:
    ramp = np.tile(np.arange(0, 180, 20, dtype=np.uint8), (9, 1))
    right, down = perceptual_hash(Image.fromarray(ramp))
    assert int(right) == 2**64 - 1
    assert int(down) == 0
    right, down = perceptual_hash(Image.fromarray(ramp.T.copy()))
    assert (int(right), int(down)) == (0, 2**64 - 1)
