"""Loaders on small files in the real layouts."""

from __future__ import annotations

import hashlib
import os
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gcdbench.data.builtin import gcdbench_datasets
from gcdbench.data.card import load_card
from gcdbench.data.imaging import decode_pixels
from gcdbench.data.sources import medmnist
from gcdbench.data.sources.folder import safe_name
from gcdbench.data.store import prepare_store
from gcdbench.data.types import DatasetRequest, DatasetSource
from gcdbench.errors import DataError
from tests.data.conftest import noise_image

SPECS = {spec.name: spec for spec in gcdbench_datasets()}


def opened(text: str, *roots: Path, **options) -> DatasetSource:
    name, _, argument = text.partition(":")
    request = DatasetRequest(name=name, argument=argument or None, roots=roots, options=options)
    source = SPECS[name].load()(request)
    assert len(source.keys) == len(set(source.keys)) == len(source.labels)
    copy = pickle.loads(pickle.dumps(source.raw))
    assert copy(0) == source.raw(0)
    return source


def refused(text: str, *roots: Path, **options) -> str:
    with pytest.raises(DataError) as caught:
        opened(text, *roots, **options)
    return caught.value.message + " " + (caught.value.hint or "")


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
    assert "300 images a class" in mini.card.title


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
    assert source.card.classes == ("9", "10")  # numbers, not texts
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
        ("file,label\nx.png,a\n", "no column 'path'"),
        ("path,label\n", "lists no images"),
        ("path,label\nx.png,a\nw.png,b\n", "line 3: 'w.png'"),
        ("path,label\nx.png,a\nx.png,b\n", "listed before, in line 2, as 'a'"),
        ("path,label\nx.png,\n", "line 2: 'x.png' has no label"),
        ("path,label,part\nx.png,a,tset\n", "the part 'tset'"),
    ],
)
def test_csv_refusals_name_the_line(tmp_path: Path, text: str, complaint: str) -> None:
    assert complaint in refused(listed(tmp_path, text))


# ---- arrays


def save_npz(path: Path, size: int = 28, channels: int = 0, counts=(20, 6, 8), classes: int = 11, **changes) -> Path:
    rng = np.random.default_rng(0)
    arrays = {}
    for part, count in zip(("train", "val", "test"), counts, strict=True):
        shape = (count, size, size, 3) if channels == 3 else (count, size, size)
        arrays[f"{part}_images"] = rng.integers(0, 256, shape, dtype=np.uint8)
        arrays[f"{part}_labels"] = (np.arange(count) % classes).astype(np.uint8)[:, None]
    arrays |= {key: value for key, value in changes.items() if value is not None}
    for key in [key for key, value in changes.items() if value is None]:
        del arrays[key]
    np.savez_compressed(path, **arrays)
    return path


def test_npz_with_one_part_is_training_data(tmp_path: Path, cache: Path) -> None:
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (9, 28, 28, 3), dtype=np.uint8), np.arange(9)[:, None] % 3
    np.savez(tmp_path / "only.npz", test_images=images, test_labels=labels)
    source = opened(f"npz:{tmp_path / 'only.npz'}")
    assert source.partition is not None
    assert set(source.partition) == {"train"}
    assert source.card.classes == ("0", "1", "2")
    assert source.decode is not None
    assert all(np.array_equal(source.decode(source.raw(i)), images[i]) for i in range(9))
    store = prepare_store(source, 28, cache, workers=1)
    assert sorted(source.labels[store.order].tolist()) == sorted(labels[:, 0].tolist())


def test_npz_leaves_the_validation_part_out(tmp_path: Path, cache: Path) -> None:
    source = opened(f"npz:{save_npz(tmp_path / 'three.npz')}")
    assert len(source) == 28
    assert source.partition is not None
    assert (source.partition == "test").sum() == 8


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"train_labels": None}, "no array 'train_labels'"),
        ({"train_images": np.zeros((20, 28), np.uint8)}, "shape (20, 28)"),
        ({"train_images": np.zeros((20, 28, 28), np.float32)}, "float32"),
        ({"train_images": np.zeros((19, 28, 28), np.uint8)}, "19 images"),
        ({"train_labels": np.zeros((20, 14), np.uint8)}, "several labels an image"),
        ({"train_labels": np.full((20, 1), -1)}, "negative"),
    ],
)
def test_npz_refusals(tmp_path: Path, cache: Path, changes, complaint: str) -> None:
    assert complaint in refused(f"npz:{save_npz(tmp_path / 'bad.npz', **changes)}")


def test_a_broken_npz_is_refused(tmp_path: Path) -> None:
    path = save_npz(tmp_path / "cut.npz")
    path.write_bytes(path.read_bytes()[:2000])
    assert "not a readable .npz" in refused(f"npz:{path}")


# ---- MedMNIST


@pytest.fixture
def organ(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch):
    """An official-looking OrganAMNIST of 34 images: the package's metadata with counts and MD5 of the test's file."""
    path = save_npz(tmp_path / "organamnist.npz")
    info = dict(medmnist.package_info()["organamnist"])
    info["n_samples"] = {"train": 20, "val": 6, "test": 8}
    info["MD5"] = hashlib.md5(path.read_bytes()).hexdigest()
    monkeypatch.setattr(medmnist, "package_info", lambda: {"organamnist": info})
    return path


def test_medmnist_loads_through_the_packages_metadata(organ: Path, cache: Path) -> None:
    source = opened("organamnist", organ.parent)
    assert source.card.classes[:2] == ("bladder", "femur-left")
    assert source.partition is not None
    assert [(source.partition == part).sum() for part in ("train", "test")] == [20, 8]
    with np.load(organ) as arrays:
        grey = arrays["test_images"][3]
    assert source.decode is not None
    assert np.array_equal(source.decode(source.raw(23)), np.stack([grey] * 3, axis=-1))
    store = prepare_store(source, 28, cache, workers=1)
    assert store.pixels.shape == (28, 32, 32, 3)


def test_medmnist_with_a_wrong_checksum_is_refused(organ: Path) -> None:
    save_npz(organ, classes=10)
    message = refused("organamnist", organ.parent)
    assert "not the published file" in message
    assert "md5:" in message


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"val_images": None}, "no array 'val_images'"),
        ({"train_labels": None}, "no array 'train_labels'"),
        ({"val_labels": np.zeros((6, 2), np.uint8)}, "several labels an image"),
        ({"test_images": np.zeros((7, 28, 28), np.uint8)}, "7 images"),
        ({"test_images": np.zeros((8, 64, 64), np.uint8)}, "expected 28 x 28"),
    ],
)
def test_medmnist_of_the_wrong_shape_is_refused(organ: Path, changes, complaint: str) -> None:
    save_npz(organ, **changes)
    assert complaint in refused("organamnist", organ.parent)


def test_medmnist_takes_the_size_that_the_network_needs(tmp_path: Path) -> None:
    names = ("organamnist.npz", "organamnist_64.npz", "organamnist_224.npz")
    for name in names:
        (tmp_path / name).touch()

    def found(image_size: int | None, **options: str) -> str | None:
        request = DatasetRequest(name="organamnist", roots=(tmp_path,), image_size=image_size, options=options)
        path = medmnist.locate(request)
        return path.name if path else None

    assert [found(size) for size in (28, 40, 64, 128, 224, 448)] == [names[i] for i in (0, 1, 1, 2, 2, 2)]
    assert found(224, size="28") == names[0]
    assert found(224, size="128") is None
    with pytest.raises(DataError, match="not '99'"):
        found(224, size="99")


def test_cards_are_complete_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    with_package = medmnist.package_card("bloodmnist")
    monkeypatch.setattr(medmnist, "package_info", dict)
    alone = medmnist.package_card("bloodmnist")
    assert alone == with_package == replace(load_card("bloodmnist"))


@pytest.mark.parametrize(
    ("text", "name"), [("画像", "画像"), ("Bäume 2", "Bäume-2"), ("a/b:c", "a-b-c"), ("..", "data"), (".x", "x")]
)
def test_a_folder_keeps_its_name_in_any_script(text: str, name: str) -> None:
    """Two folders with names in another script must not both be called 'data'."""
    assert safe_name(text) == name
