"""Lists as people have them: separators, marks, capitals, other names, Windows paths, empty labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gcdbench.datasets.source import DatasetSource
from tests.data.conftest import noise_image
from tests.data.loading import opened, refused


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """``x.png``, ``y.png`` and ``sub/z.png``."""
    (tmp_path / "sub").mkdir()
    for number, name in enumerate(("x.png", "y.png", "sub/z.png")):
        noise_image(number).save(tmp_path / name)
    return tmp_path


def table(folder: Path, content: str | bytes, **options: str) -> DatasetSource:
    (folder / "list.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    return opened(f"csv:{folder / 'list.csv'}", **options)


def complaint(folder: Path, content: str | bytes, **options: str) -> str:
    (folder / "list.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    return refused(f"csv:{folder / 'list.csv'}", **options)


PLAIN = "path,label,group,part\nx.png,b,p1,train\ny.png,a,p1,train\nsub/z.png,b,p2,test\n"


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        PLAIN.replace(",", ";"),
        PLAIN.replace(",", "\t"),
        PLAIN.replace("\n", "\r\n"),
        "\ufeff" + PLAIN,
        PLAIN.replace(",", "\t").encode("utf-16"),  # "Unicode text" of a spreadsheet
        "sep=;\n" + PLAIN.replace(",", ";"),
        PLAIN.replace("path,label,group,part", "Path , LABEL,Group,PART").replace("test", "Test"),
        PLAIN.replace("path,label", "FileName,Class"),
        PLAIN.replace("path,label", "Image Path,Diagnosis"),
        PLAIN.replace("path,", '"path",').replace("x.png", '"x.png"'),
        PLAIN.replace("\n", ",\n", 3) + ",,,\n\n",  # a spreadsheet's empty column and rows
        PLAIN.replace("sub/z.png", "sub\\z.png"),
    ],
)
def test_one_list_in_many_dresses(images: Path, content: str | bytes) -> None:
    source = table(images, content)
    assert source.card.classes == ("a", "b")
    assert source.labels.tolist() == [1, 0, 1]
    assert source.keys == ("x.png", "y.png", "sub/z.png")
    assert source.partition is not None
    assert source.partition.tolist() == ["train", "train", "test"]
    assert source.groups is not None
    assert source.groups.tolist() == ["p1", "p1", "p2"]


def test_names_with_separators_and_marks_in_quotes(images: Path) -> None:
    noise_image(9).save(images / "größe, 2 ; b.png")
    source = table(images, 'path;label\n"größe, 2 ; b.png";a\nx.png;b\n')
    assert source.keys[0] == "größe, 2 ; b.png"


def test_columns_can_be_named(images: Path) -> None:
    content = "image_id,dx,patient\nx.png,nv,1\ny.png,mel,1\n"
    assert "--dataset-set path=COLUMN" in complaint(images, content)
    source = table(images, content, path="image_id", label="DX", group="patient")
    assert source.card.classes == ("mel", "nv")
    assert source.groups is not None
    assert source.groups.tolist() == ["1", "1"]
    assert "no column 'site'" in complaint(images, content, path="image_id", label="dx", group="site")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("file,image,label\nx.png,y.png,a\n", "several columns that may be the path: 'file' and 'image'"),
        ("path,label\nx.png,a,b\n", "line 2, has 3 cells under 2 columns"),
        ("path,label\nx.png,a\nX y.png\n", "line 3: 'X y.png'"),
        ("path;label\nx.png;a\nx.png;b\n", "listed before, in line 2, as 'a'"),
        ("path,label\nsub/z.png,a\nsub\\z.png,a\n", "listed before, in line 2."),
        ("path,label\nx.png,\xe9\n".encode("latin-1"), "CSV UTF-8"),
        (b"path,label\nx.png,a\0b\n", "not a table"),
        ("", "no column 'path'"),
        ("path\nx.png\n", "no column 'label' (or class, category, diagnosis)"),
    ],
)
def test_what_is_refused(images: Path, content: str | bytes, said: str) -> None:
    assert said in complaint(images, content)


def test_a_column_of_the_own_name_wins_over_other_names(images: Path) -> None:
    assert table(images, "image,path,label\nno.png,x.png,a\nno.png,y.png,b\n").keys == ("x.png", "y.png")


def test_an_empty_label_is_an_unknown_class(images: Path) -> None:
    source = table(images, "path,label\nx.png,a\ny.png,\nsub/z.png, \n")
    assert source.labels.tolist() == [0, -1, -1]
    assert source.card.classes == ("a",)
    assert source.class_counts == [1]


def test_a_list_without_labels(images: Path) -> None:
    source = table(images, "path\nx.png\ny.png\n", labels="none")
    assert source.labels.tolist() == [-1, -1]
    assert source.card.classes == ()


def test_a_pile_of_images_without_classes(images: Path) -> None:
    source = opened(f"folder:{images}", labels="none")
    assert source.keys == ("sub/z.png", "x.png", "y.png")
    assert source.labels.tolist() == [-1, -1, -1]
    assert "no images" in refused(f"folder:{(images / 'none').mkdir() or images / 'none'}", labels="none")


def test_a_run_on_images_without_truth_points_to_discover(cli, images: Path) -> None:
    (images / "list.csv").write_text("path,label\nx.png,a\ny.png,\nsub/z.png,b\n")
    name = f"csv:{images / 'list.csv'}"
    for arguments in (
        ("run", "-m", "kmeans", "--preset", "smoke", "-d", name),
        ("data", "split", "export", name),
    ):
        result = cli(*arguments)
        assert result.exit_code == 2
        assert "1 of the 3 images" in result.stderr
        assert "gcdbench discover" in result.stderr


def test_the_audit_counts_images_without_class_and_sees_no_contradiction_in_them(cli, images: Path) -> None:
    (images / "copy.png").write_bytes((images / "x.png").read_bytes())
    (images / "list.csv").write_text("path,label\nx.png,a\ny.png,b\nsub/z.png,\ncopy.png,\n")
    result = cli("data", "audit", f"csv:{images / 'list.csv'}")
    assert result.exit_code == 0, result.output
    assert "2 images have no class" in result.stdout
    assert "exact duplicates within a class" in result.stdout


def test_labels_of_unknown_class_are_only_minus_one(images: Path) -> None:
    source = table(images, "path,label\nx.png,10\ny.png,9\nsub/z.png,\n")
    assert source.card.classes == ("9", "10")
    assert set(np.unique(source.labels).tolist()) == {-1, 0, 1}
