"""Datasets in ``.npz`` files: any of MedMNIST's shape, and MedMNIST's own."""

from __future__ import annotations

import hashlib
import os
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gcdbench.core.errors import DataError
from gcdbench.datasets.card import load_card
from gcdbench.datasets.source import DatasetRequest
from gcdbench.datasets.sources import arrays as array_source
from gcdbench.datasets.sources import medmnist
from gcdbench.images.image_store import prepare_store
from tests.data.loading import opened, refused


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


def test_npz_classes_are_the_numbers_that_occur(tmp_path: Path) -> None:
    labels = np.array([7, 3, 3, 7, 5], dtype=np.uint8)
    np.savez(tmp_path / "gaps.npz", train_images=np.zeros((5, 28, 28), dtype=np.uint8), train_labels=labels)
    source = opened(f"npz:{tmp_path / 'gaps.npz'}")
    assert source.card.classes == ("3", "5", "7")
    assert [source.card.classes[label] for label in source.labels] == ["7", "3", "3", "7", "5"]


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
        ({"train_labels": np.zeros((20, 14), np.uint8)}, "several labels per image"),
        ({"train_labels": np.full((20, 1), -1)}, "negative"),
    ],
)
def test_npz_refusals(tmp_path: Path, cache: Path, changes, complaint: str) -> None:
    assert complaint in refused(f"npz:{save_npz(tmp_path / 'bad.npz', **changes)}")


def test_a_broken_npz_is_refused(tmp_path: Path) -> None:
    path = save_npz(tmp_path / "cut.npz")
    path.write_bytes(path.read_bytes()[:2000])
    assert "not a readable .npz" in refused(f"npz:{path}")


def test_a_damaged_array_inside_a_readable_npz_is_one_sentence(tmp_path: Path, cache: Path) -> None:
    path = save_npz(tmp_path / "flipped.npz")
    member = zipfile.ZipFile(path).getinfo("train_images.npy")
    data = bytearray(path.read_bytes())
    middle = member.header_offset + member.compress_size // 2
    data[middle : middle + 200] = bytes(byte ^ 0x5A for byte in data[middle : middle + 200])
    path.write_bytes(data)
    assert "'train_images' is damaged" in refused(f"npz:{path}")
    assert list((cache / "arrays").iterdir()) == []


@pytest.mark.parametrize("kind", ["cut", "flipped", "directory"])
def test_an_unpacked_array_that_is_damaged_is_unpacked_again_and_said(
    tmp_path: Path, cache: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = f"npz:{save_npz(tmp_path / 'whole.npz')}"
    first = opened(name).raw(0)
    (unpacked,) = (cache / "arrays").glob("*/array.npy")
    content = bytearray(unpacked.read_bytes())
    unpacked.unlink()
    if kind == "directory":
        unpacked.mkdir()
    else:
        content[140] ^= 1  # in the first image
        unpacked.write_bytes(content[:200] if kind == "cut" else content)
    array_source._unpacked.cache_clear()  # as a new process would begin
    assert opened(name).raw(0) == first
    assert "damaged" in caplog.text


def test_an_array_that_is_stored_by_columns_is_the_same_array(tmp_path: Path, cache: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (20, 28, 30), dtype=np.uint8)
    rows = opened(f"npz:{save_npz(tmp_path / 'rows.npz', train_images=images)}")
    columns = opened(f"npz:{save_npz(tmp_path / 'columns.npz', train_images=np.asfortranarray(images))}")
    for index in (0, 7, 19):
        assert rows.raw(index) == columns.raw(index)
        assert np.array_equal(array_source.decode_array(rows.raw(index))[..., 0], images[index])


def test_reading_an_unpacked_array_counts_as_a_use(tmp_path: Path, cache: Path) -> None:
    name = f"npz:{save_npz(tmp_path / 'whole.npz')}"
    opened(name).raw(0)
    (meta,) = (cache / "arrays").glob("*/meta.json")
    os.utime(meta, (0, 0))
    array_source._unpacked.cache_clear()  # as a new process would begin
    opened(name).raw(0)
    assert meta.stat().st_mtime > 0


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
        ({"val_labels": np.zeros((6, 2), np.uint8)}, "several labels per image"),
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
