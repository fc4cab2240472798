"""Split files: reading back, comparing, and refusing what was edited or is for other images."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gcdbench.core.errors import DataError
from gcdbench.splits.manifest import SplitManifest, make_split
from gcdbench.splits.protocol import Protocol
from gcdbench.splits.split_file import compare_splits, read_split, require_same_images


def split(seed: int = 0, n: int = 40, salt: str = "", groups: bool = False) -> SplitManifest:
    contents = sorted(hashlib.sha256(f"{salt}{i}".encode()).hexdigest() for i in range(n))
    return make_split(
        dataset="d",
        class_names=["a", "b", "ç"],
        labels=np.arange(n) % 3,
        sha256=contents,
        protocol=Protocol(name="half", split_seed=seed),
        groups=np.array([f"p{i // 3}" for i in range(n)]) if groups else None,
    )


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "split.tsv"
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("groups", [False, True])
def test_a_split_reads_back_as_it_was(tmp_path: Path, groups: bool) -> None:
    made = split(groups=False) if not groups else replace(split(), groups=np.arange(40) // 2)
    back = read_split(write(tmp_path, made.to_text()))
    assert back.to_text() == made.to_text()
    assert back.sha == made.sha
    assert back.protocol == made.protocol
    assert back.classes == made.classes
    assert compare_splits(made, back).same


def test_differences_are_counted_by_content() -> None:
    one, other = split(0), split(1)
    found = compare_splits(one, other)
    assert not found.same
    expected = {sha for sha, a, b in zip(one.sha256, one.roles, other.roles, strict=True) if a != b}
    assert set(found.roles) == expected
    assert expected
    assert found.header == ("protocol",)
    assert not found.only_left
    assert not found.classes
    fewer = compare_splits(split(n=40), split(n=37))
    assert len(fewer.only_left) == 3
    assert not fewer.only_right


def test_a_split_for_other_images_is_refused() -> None:
    require_same_images(split(0), split(1))
    with pytest.raises(DataError, match="40 of its images are not here"):
        require_same_images(split(), split(salt="x"))
    shifted = replace(split(), labels=(split().labels + 1) % 3)
    with pytest.raises(DataError, match="40 have another class"):
        require_same_images(shifted, split())


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda t: t.replace("labelled", "labeled"), "line"),
        (lambda t: t.replace("\tunlabelled\t", "\tlabelled\t", 1), "contradicts itself"),
        (lambda t: t.replace("gcdbench-split/1", "gcdbench-split/9"), "is not in the format"),
        (lambda t: "\n".join(t.split("\n")[1:]), "not a split manifest"),
        (lambda t: "# {\n" + "\n".join(t.split("\n")[1:]), "not JSON"),
        (lambda t: t.replace('"split_seed"', '"split_sead"'), "unknown field 'split_sead'"),
        (lambda t: t.rstrip("\n"), "contradicts itself"),
        (lambda t: t.replace("\t2\t", "\t7\t"), "class is not between 0 and 2"),
        (lambda t: "\n".join(t.split("\n")[:9]) + "\n", "contradicts itself"),
    ],
)
def test_an_edited_file_is_refused(tmp_path: Path, change, complaint: str) -> None:
    with pytest.raises(DataError) as caught:
        read_split(write(tmp_path, change(split().to_text())))
    assert complaint in caught.value.message
