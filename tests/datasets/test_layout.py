"""Part folders are never classes: three layouts as they are in public repositories, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gcdbench.datasets.source import DatasetSource
from gcdbench.datasets.sources.parts import part_of
from tests.data.conftest import noise_image
from tests.data.loading import opened, refused


def tree(root: Path, folders: dict[str, int]) -> Path:
    """Image files in folders; every image is another one."""
    for number, (folder, count) in enumerate(folders.items()):
        (root / folder).mkdir(parents=True, exist_ok=True)
        for index in range(count):
            noise_image(1000 * number + index).save(root / folder / f"{index}.png")
    return root


def counts(source: DatasetSource, part: str) -> dict[str, int]:
    """Images per class in one part."""
    assert source.partition is not None
    found = np.bincount(source.labels[source.partition == part], minlength=len(source.card.classes))
    return dict(zip(source.card.classes, found.tolist(), strict=True))


REPOSITORIES = {
    "brain tumours, MRI": (
        {"Training/glioma_tumor": 3, "Training/no_tumor": 2, "Testing/glioma_tumor": 1, "Testing/no_tumor": 2},
        {"glioma_tumor": 3, "no_tumor": 2},
        {"glioma_tumor": 1, "no_tumor": 2},
    ),
    "skin lesions": (
        {"Train/melanoma": 2, "Train/nevus": 3, "Test/melanoma": 1, "Test/nevus": 1},
        {"melanoma": 2, "nevus": 3},
        {"melanoma": 1, "nevus": 1},
    ),
    "chest X-rays": (
        {
            "train/NORMAL": 2,
            "train/PNEUMONIA": 3,
            "Val/NORMAL": 1,
            "Val/PNEUMONIA": 1,
            "test/NORMAL": 2,
            "test/PNEUMONIA": 1,
        },
        {"NORMAL": 3, "PNEUMONIA": 4},
        {"NORMAL": 2, "PNEUMONIA": 1},
    ),
}


@pytest.mark.parametrize("name", REPOSITORIES)
def test_parts_of_real_repositories_are_no_classes(tmp_path: Path, name: str) -> None:
    folders, train, test = REPOSITORIES[name]
    source = opened(f"folder:{tree(tmp_path / 'set', folders)}")
    assert counts(source, "train") == train
    assert counts(source, "test") == test
    said = " ".join(remark.message for remark in source.remarks if remark.kind == "layout")
    for folder in {key.split("/")[0] for key in folders}:
        assert f"{folder}:" in said


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("train", "train"), ("Training", "train"), ("TRAIN", "train"), ("training_set", "train"), ("trainset", "train"),
        ("val", "train"), ("Valid", "train"), ("VALIDATION", "train"), ("validation-set", "train"),
        ("test", "test"), ("Testing", "test"), ("test images", "test"), ("TestData", "test"),
        ("testis", None), ("trainee", None), ("valve", None), ("contest", None), ("trains", None), ("", None),
    ],
)  # fmt: skip
def test_names_of_parts(name: str, part: str | None) -> None:
    assert part_of(name) == part


def test_a_class_called_train_stays_a_class_among_other_vehicles(tmp_path: Path) -> None:
    source = opened(f"folder:{tree(tmp_path / 'set', {'train': 2, 'plane': 2, 'car': 2})}")
    assert source.card.classes == ("car", "plane", "train")
    assert not source.remarks


def test_parts_inside_of_classes(tmp_path: Path) -> None:
    folders = {"benign/train": 3, "benign/test": 1, "malignant/train": 2, "malignant/test": 2}
    source = opened(f"folder:{tree(tmp_path / 'set', folders)}")
    assert counts(source, "train") == {"benign": 3, "malignant": 2}
    assert counts(source, "test") == {"benign": 1, "malignant": 2}


def test_a_folder_beside_the_parts_is_doubt_and_can_be_settled(tmp_path: Path) -> None:
    folders = {"training/a": 2, "training/b": 2, "test/a": 1, "test/b": 1, "single_prediction": 2}
    text = f"folder:{tree(tmp_path / 'set', folders)}"
    message = refused(text)
    assert "'single_prediction'" in message
    assert "parts=test:test,training:train" in message
    source = opened(text, parts="test:test,training:train")
    assert counts(source, "train") == {"a": 2, "b": 2}
    assert {item.key for item in source.raw.ignored if item.reason == "in no part"} == {
        "single_prediction/0.png",
        "single_prediction/1.png",
    }
    assert opened(text, layout="classes").card.classes == ("single_prediction", "test", "training")


def test_the_same_folders_everywhere_are_refused_until_somebody_says_what_they_are(tmp_path: Path) -> None:
    folders = {f"{lot}/{label}": 2 for lot in ("Lot 1", "Lot 2", "Lot 3") for label in ("benign", "malignant")}
    folders.pop("Lot 3/malignant")  # a patient without a tumour: the folders need not be exactly the same
    text = f"folder:{tree(tmp_path / 'set', folders)}"
    message = refused(text)
    assert "'benign', 'malignant'" in message
    assert "layout=classes" in message
    assert opened(text, layout="classes").card.classes == ("Lot 1", "Lot 2", "Lot 3")
    source = opened(text, parts="Lot 1:train, Lot 3:Train, Lot 2:TEST")
    assert counts(source, "train") == {"benign": 4, "malignant": 2}
    assert counts(source, "test") == {"benign": 2, "malignant": 2}


@pytest.mark.parametrize(
    "change",
    [
        lambda folders: folders.pop("other/d"),  # one site lacks a class
        lambda folders: folders.update({"hospital": 1}),  # an image beside the class folders
    ],
    ids=["a class is missing", "a stray image"],
)
def test_almost_the_same_folders_are_doubt_as_well(tmp_path: Path, change: Callable[[dict[str, int]], object]) -> None:
    folders = {f"{site}/{label}": 2 for site in ("hospital", "other") for label in "abcd"}
    change(folders)
    assert "layout=classes" in refused(f"folder:{tree(tmp_path / 'set', folders)}")


def test_patients_with_names_of_their_own_are_no_doubt(tmp_path: Path) -> None:
    folders = {"a/p1": 1, "a/p2": 1, "b/p2": 1, "b/p3": 1}
    assert opened(f"folder:{tree(tmp_path / 'set', folders)}").card.classes == ("a", "b")


def test_one_folder_in_between_is_named(tmp_path: Path) -> None:
    root = tree(tmp_path / "set", {"Dataset/a": 2, "Dataset/b": 2})
    assert f"folder:{root / 'Dataset'}" in refused(f"folder:{root}")


@pytest.mark.parametrize(
    ("folders", "complaint"),
    [
        ({"train": 2, "test": 2}, "no class folders in them"),
        ({"Test/a": 2, "Test/b": 2}, "no class folder for training"),
        ({"train/a": 2, "train/b": 1, "test/images": 2}, "no class in common"),
    ],
)
def test_parts_that_make_no_sense(tmp_path: Path, folders: dict[str, int], complaint: str) -> None:
    assert complaint in refused(f"folder:{tree(tmp_path / 'set', folders)}")


def test_test_images_without_classes_are_left_out_and_counted(tmp_path: Path) -> None:
    source = opened(f"folder:{tree(tmp_path / 'set', {'train/a': 2, 'train/b': 2, 'test': 3})}")
    assert counts(source, "train") == {"a": 2, "b": 2}
    [warning] = [remark for remark in source.remarks if remark.level == "warning"]
    assert "3 images directly in 'test'" in warning.message


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"layout": "parts"}, "'a' in"),
        ({"layout": "both"}, "must be classes or parts"),
        ({"parts": "a"}, "not of the form"),
        ({"parts": "a:first"}, "not of the form"),
        ({"parts": "c:train"}, "no folder 'c'"),
        ({"parts": "a:train", "layout": "classes"}, "leave one out"),
    ],
)
def test_options_that_do_not_fit(tmp_path: Path, options: dict[str, str], complaint: str) -> None:
    root = tree(tmp_path / "set", {"a/x": 1, "a/y": 1, "b/x": 1, "b/y": 1})
    assert complaint in refused(f"folder:{root}", **options)


def test_the_command_line_says_what_was_understood(cli, tmp_path: Path) -> None:
    folders, *_ = REPOSITORIES["skin lesions"]
    root = tree(tmp_path / "set", folders)
    result = cli("data", "prepare", f"folder:{root}", "--image-size", 16)
    assert result.exit_code == 0, result.output
    assert "Train:train" in result.stderr
    report = cli("data", "audit", f"folder:{root}")
    assert "read as parts" in report.stdout
    run = cli("run", "-m", "kmeans", "-d", f"folder:{root}", "--preset", "smoke", "--set", "image_size=16")
    assert run.exit_code == 0, run.output
    assert "Train:train" in run.stderr
