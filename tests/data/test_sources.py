"""Loaders on small files in the real layouts."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gcdbench.core.errors import DataError
from gcdbench.datasets.card import load_card
from gcdbench.datasets.source import DatasetSource
from gcdbench.datasets.sources.own import safe_name
from gcdbench.images.decoding import decode_pixels
from tests.data.conftest import noise_image
from tests.data.loading import opened, refused

# ---- folders


def test_folder_takes_classes_in_sorted_order_and_images_at_any_depth(make_folder) -> None:
    root = make_folder({"b": 2, "a": 3})
    (root / "b" / "deep" / "er").mkdir(parents=True)
    noise_image(5).save(root / "b" / "deep" / "er" / "x.PNG")
    source = opened(f"folder:{root}")
    assert source.card.classes == ("a", "b")
    assert np.bincount(source.labels).tolist() == [3, 3]
    assert "b/deep/er/x.PNG" in source.keys


def test_folder_with_train_and_test(make_folder, tmp_path: Path) -> None:
    make_folder({"a": 3, "b": 2}, name="set/train")
    make_folder({"a": 1, "b": 1}, name="set/test", seed=50)
    source = opened(f"folder:{tmp_path / 'set'}")
    assert source.card.classes == ("a", "b")
    assert source.partition is not None
    assert sorted(zip(source.partition.tolist(), source.labels.tolist(), strict=True)) == sorted(
        [("train", 0)] * 3 + [("train", 1)] * 2 + [("test", 0), ("test", 1)]
    )


def test_a_picture_beside_train_and_test_makes_them_no_classes(make_folder, tmp_path: Path) -> None:
    make_folder({"a": 3, "b": 2}, name="set/train")
    make_folder({"a": 1, "b": 1}, name="set/test", seed=50)
    picture = next((tmp_path / "set" / "train" / "a").iterdir())
    (tmp_path / "set" / f"overview{picture.suffix}").write_bytes(picture.read_bytes())
    source = opened(f"folder:{tmp_path / 'set'}")
    assert source.card.classes == ("a", "b")
    assert source.partition is not None
    assert source.partition.tolist().count("test") == 2
    assert not [key for key in source.keys if "overview" in key]


def test_folder_is_also_looked_for_below_the_data_roots(make_folder, tmp_path: Path) -> None:
    make_folder({"a": 1, "b": 1}, name="mine")
    assert len(opened("folder:mine", tmp_path)) == 2


def test_folder_refusals(make_folder, tmp_path: Path) -> None:
    assert "needs a path" in refused("folder:")
    assert "There is no 'nowhere'" in refused("folder:nowhere", tmp_path)
    (tmp_path / "empty").mkdir()
    assert "no class folders" in refused(f"folder:{tmp_path / 'empty'}")
    flat = tmp_path / "flat"
    flat.mkdir()
    noise_image(1).save(flat / "x.png")
    assert "no class folders" in refused(f"folder:{flat}")
    assert "not a folder" in refused(f"folder:{flat / 'x.png'}")
    root = make_folder({"a": 1, "b": 1})
    assert "no option 'sise'" in refused(f"folder:{root}", sise="3")


def test_links_are_followed_once_and_loops_are_left_out(make_folder, tmp_path: Path) -> None:
    root = make_folder({"a": 2})
    other = make_folder({"x": 2}, name="elsewhere", seed=90)
    os.symlink(other / "x", root / "b")
    os.symlink(root, root / "a" / "loop")
    os.symlink(root / "a" / "itself.png", root / "a" / "itself.png")
    os.symlink(root / "a" / "gone.png", root / "a" / "dangling.png")
    source = opened(f"folder:{root}")
    assert source.card.classes == ("a", "b")
    assert len(source) == 4
    ignored = {item.key: item.reason for item in source.raw.ignored}
    assert "loop" in ignored["a/loop"]
    assert {"a/itself.png", "a/dangling.png"} < set(ignored)


# ---- built-in folders


def kvasir(tmp_path: Path, name: str = "kvasir/kvasir-dataset") -> Path:
    for number, label in enumerate(load_card("kvasir").classes):
        (tmp_path / name / label).mkdir(parents=True)
        noise_image(number).save(tmp_path / name / label / "1.jpg")
    return tmp_path


@pytest.mark.parametrize(
    ("dataset", "place"),
    [
        ("kvasir", "kvasir/kvasir-dataset"),
        ("kvasir", "kvasir-dataset"),
        ("kvasir", "kvasir"),
        ("kvasir-v2", "kvasir-dataset-v2"),
        ("kvasir-v2", "kvasir/kvasir-dataset-v2"),
    ],
)
def test_kvasir_is_found_where_its_archive_puts_it(tmp_path: Path, dataset: str, place: str) -> None:
    source = opened(dataset, tmp_path / "none", kvasir(tmp_path, place))
    assert source.card.name == dataset
    assert source.labels.tolist() == list(range(8))


def test_version_two_is_not_taken_for_version_one(tmp_path: Path) -> None:
    kvasir(tmp_path, "kvasir/kvasir-dataset-v2")
    assert "not on this machine" in refused("kvasir", tmp_path)


def test_a_missing_dataset_says_where_it_was_looked_for_and_how_to_get_it(tmp_path: Path) -> None:
    for name in ("kvasir", "kvasir-v2", "nct-crc-he-100k", "ham10000", "pbc", "kvasir-seg", "organamnist"):
        message = refused(name, tmp_path / "here")
        assert str(tmp_path / "here") in message
        assert f"gcdbench data fetch {name}" in message or "get it from http" in message


def test_pbc_in_full_is_preferred_to_its_mini_edition(tmp_path: Path) -> None:
    classes = load_card("pbc").classes
    for place, seed in (("pbc-mini", 0), ("PBC_dataset_normal_DIB", 100)):
        for number, label in enumerate(classes):
            (tmp_path / place / label).mkdir(parents=True)
            noise_image(seed + number).save(tmp_path / place / label / "1.jpg")
    noise_image(1).save(tmp_path / "PBC_dataset_normal_DIB" / "neutrophil" / ".DS_169665.jpg")
    full = opened("pbc", tmp_path)
    assert full.location.endswith("PBC_dataset_normal_DIB")
    assert full.card.counts == load_card("pbc").counts
    assert [item.key for item in full.raw.ignored] == ["neutrophil/.DS_169665.jpg"]
    for path in sorted((tmp_path / "PBC_dataset_normal_DIB").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    mini = opened("pbc", tmp_path)
    assert mini.card.counts == (300,) * 8
    assert "300 images per class" in mini.card.title


def test_nct_crc_reads_tif_and_takes_the_second_archive_as_test(tmp_path: Path) -> None:
    classes = ["ADI", "BACK", "DEB", "LYM", "MUC", "MUS", "NORM", "STR", "TUM"]
    for place, per_class in (("NCT-CRC-HE-100K", 3), ("CRC-VAL-HE-7K", 1)):
        for number, label in enumerate(classes):
            (tmp_path / place / label).mkdir(parents=True)
            for index in range(per_class):
                image = noise_image(1000 * per_class + 10 * number + index, 224, 224)
                image.save(tmp_path / place / label / f"{label}-{index}.tif")
    source = opened("nct-crc-he-100k", tmp_path)
    assert source.card.classes == tuple(classes)
    assert source.partition is not None
    is_test = source.partition == "test"
    assert np.bincount(source.labels[is_test]).tolist() == [1] * 9
    assert np.bincount(source.labels[~is_test]).tolist() == [3] * 9
    last = int(np.flatnonzero(is_test)[-1])
    expected = np.asarray(Image.open(tmp_path / "CRC-VAL-HE-7K" / "TUM" / "TUM-0.tif"))
    assert np.array_equal(decode_pixels(source.raw(last)), expected)
    (tmp_path / "CRC-VAL-HE-7K").rename(tmp_path / "elsewhere")
    assert len(opened("nct-crc-he-100k", tmp_path)) == 27


def ham(tmp_path: Path, rows: list[tuple[str, str, str]], folder: str = "images") -> Path:
    root = tmp_path / "ham10000"
    (root / folder).mkdir(parents=True)
    for number, (_, image, _) in enumerate(rows):
        noise_image(number).save(root / folder / f"{image}.jpg")
    lines = ["lesion_id,image_id,dx,dx_type", *(f"{lesion},{image},{dx},histo" for lesion, image, dx in rows)]
    (root / "HAM10000_metadata.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_ham10000_is_grouped_by_lesion(tmp_path: Path) -> None:
    rows = [("L1", "I1", "nv"), ("L1", "I2", "nv"), ("L2", "I3", "mel"), ("L3", "I4", "akiec")]
    source = opened("ham10000", ham(tmp_path, rows, "HAM10000_images_part_1"))
    assert source.groups is not None
    names = [os.path.basename(key) for key in source.keys]
    assert dict(zip(names, source.groups.tolist(), strict=True)) == {f"{i}.jpg": lesion for lesion, i, _ in rows}
    assert [source.card.classes[label] for label in source.labels] == [dx for _, _, dx in rows]


def test_ham10000_with_missing_images_or_a_strange_table(tmp_path: Path) -> None:
    root = ham(tmp_path, [("L1", "I1", "nv"), ("L2", "I2", "mel")])
    (root / "ham10000" / "images" / "I2.jpg").unlink()
    source = opened("ham10000", root)
    assert len(source) == 1
    assert any(item.key == "I2" and "no such image" in item.reason for item in source.raw.ignored)
    (root / "ham10000" / "HAM10000_metadata.csv").write_text("lesion_id,image_id,dx\nL1,I1,wart\n")
    assert "diagnosis 'wart'" in refused("ham10000", root)
    (root / "ham10000" / "HAM10000_metadata.csv").write_text("image_id,dx\nI1,nv\n")
    assert "no column 'lesion_id'" in refused("ham10000", root)


def test_kvasir_seg_pairs_images_with_masks(tmp_path: Path) -> None:
    root = tmp_path / "Kvasir-SEG"
    for folder in ("images", "masks"):
        (root / folder).mkdir(parents=True)
    mask = np.zeros((32, 40), dtype=np.uint8)
    mask[8:24, 10:30] = 255
    for name in ("a", "b"):
        noise_image(ord(name)).save(root / "images" / f"{name}.jpg")
        Image.fromarray(mask).save(root / "masks" / f"{name}.jpg", quality=95)
    noise_image(9).save(root / "images" / "lonely.jpg")
    source = opened("kvasir-seg", tmp_path)
    assert source.card.purpose == "masks"
    assert source.keys == ("images/a.jpg", "images/b.jpg")
    assert source.mask is not None
    found = source.mask(1)
    assert found is not None
    assert (found == (mask > 0)).mean() > 0.99
    assert [item.key for item in source.raw.ignored] == ["images/lonely.jpg"]


# ---- lists


def listed(tmp_path: Path, text: str) -> str:
    for number, name in enumerate(("x.png", "y.png", "z.png")):
        noise_image(number).save(tmp_path / name)
    (tmp_path / "list.csv").write_text(text)
    return f"csv:{tmp_path / 'list.csv'}"


def test_csv_with_groups_and_parts(tmp_path: Path) -> None:
    text = "path,label,group,part\nx.png,10,p1,train\ny.png,9,p1,train\nz.png,10,,test\n"
    source = opened(listed(tmp_path, text))
    assert source.card.classes == ("9", "10")  # numbers, not strings
    assert source.labels.tolist() == [1, 0, 1]
    assert source.partition is not None
    assert source.partition.tolist() == ["train", "train", "test"]
    assert source.groups is not None
    assert source.groups[0] == source.groups[1] != source.groups[2]
    assert source.card.name == "csv-list"


def test_csv_with_two_columns_has_no_groups(tmp_path: Path) -> None:
    source = opened(listed(tmp_path, "\ufeffpath,label\nx.png,b\ny.png,a\n"))
    assert source.groups is None
    assert source.card.classes == ("a", "b")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("name,label\nx.png,a\n", "no column 'path' (or file, filename, "),
        ("path,label\n", "lists no images"),
        ("path,label\nx.png,a\nw.png,b\n", "line 3: 'w.png'"),
        ("path,label\nx.png,a\nx.png,b\n", "listed before, in line 2, as 'a'"),
        ("path,label\n,a\n", "line 2, names no file"),
        ("path,label,part\nx.png,a,tset\n", "the part 'tset'"),
    ],
)
def test_csv_refusals_name_the_line(tmp_path: Path, text: str, complaint: str) -> None:
    assert complaint in refused(listed(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "name"), [("画像", "画像"), ("Bäume 2", "Bäume-2"), ("a/b:c", "a-b-c"), ("..", "data"), (".x", "x")]
)
def test_a_folder_keeps_its_name_in_any_script(text: str, name: str) -> None:
    """Two folders with names in another script must not both be called 'data'."""
    assert safe_name(text) == name


def test_a_part_that_is_neither_train_nor_test_is_refused() -> None:
    parts = np.array(["train", "Test"])
    with pytest.raises(DataError, match="into the part 'Test'"):
        DatasetSource(
            card=load_card("kvasir"), keys=("a", "b"), labels=np.array([0, 1]), raw=lambda i: b"", partition=parts
        )
