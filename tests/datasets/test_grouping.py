"""Patients stay together: nested folders with spaces, other scripts and ``.JPG``, patterns, and what the audit says."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import numpy as np
import pytest

from gcdbench.datasets.integrity.dataset_findings import find_faults
from gcdbench.datasets.source import DatasetSource
from gcdbench.splits.manifest import make_split
from gcdbench.splits.protocol import Protocol
from tests.data.conftest import noise_image
from tests.data.loading import opened, refused

HALF = Protocol(name="half")


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    """Two diagnoses, eight patients each, three images per patient; names as a clinic may have them."""
    root = tmp_path / "Übersicht 2024"
    for number, label in enumerate(("Karzinom (früh)", "正常")):
        for patient in range(8):
            folder = root / label / f"Patient {number}{patient} – Nr. {patient}"
            folder.mkdir(parents=True)
            for index in range(3):
                noise_image(1000 * number + 10 * patient + index).save(folder / f"Bild {index}.JPG", format="JPEG")
    return root


def sides(source: DatasetSource, groups: np.ndarray) -> list[set[int]]:
    """The roles that the images of each patient have in a split."""
    split = make_split(
        dataset="d",
        class_names=source.card.classes,
        labels=source.labels,
        sha256=[f"{number:064x}" for number in range(len(source))],
        protocol=HALF,
        groups=source.groups,
    )
    return [set(split.roles[groups == name].tolist()) for name in np.unique(groups)]


def patients(source: DatasetSource) -> np.ndarray:
    return np.array([key.split("/")[1] for key in source.keys])


def test_patients_stay_on_one_side(clinic: Path) -> None:
    source = opened(f"folder:{clinic}", groups="parent")
    assert len(source) == 48
    assert source.card.classes == ("Karzinom (früh)", "正常")
    assert all(len(roles) == 1 for roles in sides(source, patients(source)))
    torn = opened(f"folder:{clinic}")
    assert torn.groups is None
    assert any(len(roles) > 1 for roles in sides(torn, patients(torn)))


def test_the_audit_says_that_no_grouping_is_set(clinic: Path, cli) -> None:
    without = find_faults(opened(f"folder:{clinic}"), HALF, workers=1)
    [finding] = [finding for finding in without.findings if finding.kind == "no-groups"]
    assert finding.level == "warning"
    assert "groups=parent" in finding.message
    grouped = find_faults(opened(f"folder:{clinic}", groups="parent"), HALF, workers=1)
    assert grouped.ok
    assert "no-groups" not in {finding.kind for finding in grouped.findings}
    assert "groups=parent" in cli("data", "audit", f"folder:{clinic}").stdout


def test_one_sub_folder_that_every_class_has_is_no_patient(tmp_path: Path) -> None:
    for label in "ab":
        (tmp_path / "set" / label / "images").mkdir(parents=True)
        noise_image(ord(label)).save(tmp_path / "set" / label / "images" / "x.png")
    assert not opened(f"folder:{tmp_path / 'set'}").remarks


def test_a_patient_of_two_classes_or_two_parts_is_one_patient(tmp_path: Path) -> None:
    names = ["train/a/p1/1", "train/b/p1/1", "train/a/p2/1", "test/a/p2/1", "train/b/1", "test/b/p3/1"]
    names += ["train/a/p4/1", "train/a/p5/1"]
    for number, name in enumerate(names):
        file = tmp_path / "set" / f"{name}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        noise_image(number).save(file)
    source = opened(f"folder:{tmp_path / 'set'}", groups="parent")
    assert source.groups is not None
    found = dict(zip(source.keys, source.groups.tolist(), strict=True))
    assert found["train/a/p1/1.png"] == found["train/b/p1/1.png"]
    assert found["train/a/p2/1.png"] == found["test/a/p2/1.png"]
    assert len(set(found.values())) == 6  # one image stands alone
    assert "1 of 8 images belong to no group" in " ".join(remark.message for remark in source.remarks)
    report = find_faults(source, HALF, workers=1)
    [torn] = [finding for finding in report.findings if finding.kind == "groups-across-roles"]
    assert torn.level == "error"
    assert {name.split(" ")[0] for group in torn.groups for name in group} >= {"train/a/p2/1.png", "test/a/p2/1.png"}


def test_a_pattern_finds_the_patient_in_the_name(tmp_path: Path) -> None:
    for number, name in enumerate(("a/P01_left", "a/P01_right", "b/P01_left", "b/P02_left", "b/unknown")):
        file = tmp_path / "set" / f"{name}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        noise_image(number).save(file)
    text = f"folder:{tmp_path / 'set'}"
    source = opened(text, groups=r"(?P<group>P\d+)_")
    assert source.groups is not None
    assert source.groups.tolist() == ["P01", "P01", "P01", "P02", "alone: b/unknown.png"]
    apart = opened(text, groups=r"(?P<group>[ab]/P\d+)_")
    assert apart.groups is not None
    assert apart.groups.tolist()[:4] == ["a/P01", "a/P01", "b/P01", "b/P02"]
    assert "not a pattern" in refused(text, groups="(?P<group>")
    assert "named 'group'" in refused(text, groups="(P..)")
    assert "none of the 5 images" in refused(text, groups="(?P<group>Q..)")
    assert "none of the 5 images" in refused(text, groups="parent")


def test_a_list_takes_groups_from_paths_as_well(tmp_path: Path) -> None:
    for number, name in enumerate(("p1/1.png", "p1/2.png", "p2/1.png")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        noise_image(number).save(tmp_path / name)
    (tmp_path / "list.csv").write_text("path,label\np1/1.png,a\np1/2.png,b\np2/1.png,a\n")
    source = opened(f"csv:{tmp_path / 'list.csv'}", groups="parent")
    assert source.groups is not None
    assert source.groups.tolist() == ["p1", "p1", "p2"]
    (tmp_path / "list.csv").write_text("path,label,group\np1/1.png,a,x\n")
    assert "leave one out" in refused(f"csv:{tmp_path / 'list.csv'}", groups="parent")


def test_one_class_in_two_spellings_of_unicode_is_one_class(tmp_path: Path) -> None:
    composed, apart = (unicodedata.normalize(form, "Ödem") for form in ("NFC", "NFD"))
    assert composed != apart
    for number, name in enumerate((f"train/{composed}", "train/b", f"test/{apart}", "test/b")):
        folder = tmp_path / "set" / name
        folder.mkdir(parents=True)
        noise_image(number).save(folder / "x.png")
    if len(list((tmp_path / "set").rglob("x.png"))) < 4:
        pytest.skip("this file system knows one spelling only")
    source = opened(f"folder:{tmp_path / 'set'}")
    assert source.card.classes == ("b", composed)
