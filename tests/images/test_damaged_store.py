"""Damaged stores and remembered hashes: pixels never change silently, and good images are never accused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gcdbench.core.errors import DataError
from gcdbench.datasets.source import DatasetRequest, DatasetSource
from gcdbench.datasets.sources.folder import make_folder
from gcdbench.images.hashing import content_hashes
from gcdbench.images.image_store import ImageStore, prepare_store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "set"
    for label in ("a", "b"):
        (root / label).mkdir(parents=True)
        for index in range(6):
            pixels = np.random.default_rng([ord(label), index]).integers(0, 256, (40, 40, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(root / label / f"{index}.png")
    return root


def opened(root: Path) -> DatasetSource:
    return make_folder(DatasetRequest(name="folder", argument=str(root)))


def prepared(root: Path, cache: Path, notes: list[str]) -> ImageStore:
    return prepare_store(opened(root), 32, cache, workers=1, note=notes.append)


def zero_half(file: Path) -> None:
    size = file.stat().st_size
    with file.open("r+b") as handle:
        handle.seek(size // 2)
        handle.write(bytes(size // 4))


def flip_one_bit(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def put_directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize("damage", [zero_half, flip_one_bit, put_directory])
def test_damaged_pixels_are_decoded_again(tmp_path: Path, folder: Path, damage: Callable[[Path], None]) -> None:
    notes: list[str] = []
    first = prepared(folder, tmp_path / "cache", notes)
    pixels = np.array(first.pixels)
    damage(first.folder / "pixels.npy")
    again = prepared(folder, tmp_path / "cache", notes)
    assert again.key == first.key
    assert np.array_equal(again.pixels, pixels)
    assert len(notes) == 1
    assert "damaged" in notes[0]


@pytest.mark.parametrize("damage", [zero_half, flip_one_bit, put_directory])
@pytest.mark.parametrize("store_too", [False, True])
def test_damaged_hashes_accuse_nobody(
    tmp_path: Path, folder: Path, damage: Callable[[Path], None], store_too: bool
) -> None:
    notes: list[str] = []
    cache = tmp_path / "cache"
    first = prepared(folder, cache, notes)
    [memory] = (cache / "hashes").iterdir()
    damage(memory)
    if store_too:
        shutil.rmtree(cache / "stores")
    again = prepared(folder, cache, notes)
    assert (again.key, again.sha256) == (first.key, first.sha256)
    assert len(notes) == 1
    assert "hashes" in notes[0]
    assert prepared(folder, cache, notes).key == first.key
    assert len(notes) == 1


def test_images_that_changed_behind_their_stamp_are_read_again_and_not_accused(tmp_path: Path, folder: Path) -> None:
    """A clock that was set back, say: what is remembered does not fit, and the files are what counts."""
    notes: list[str] = []
    cache = tmp_path / "cache"
    source = opened(folder)
    content_hashes(source, cache, workers=1)
    shutil.copy(folder / "b" / "0.png", folder / "a" / "0.png")
    stale = replace(opened(folder), fingerprint=source.fingerprint)
    store = prepare_store(stale, 32, cache, workers=1, note=notes.append)
    assert len(set(store.sha256)) == 11
    assert len(notes) == 1


def test_a_file_that_reads_differently_every_time_is_named(tmp_path: Path, folder: Path) -> None:
    source = opened(folder)
    calls = iter(range(10**6))

    def unstable(index: int) -> bytes:
        data = source.raw(index)
        return data + bytes([next(calls) % 256]) if index == 3 else data

    changing = replace(source, raw=unstable)
    with pytest.raises(DataError, match=r"1 of 12 .*a/3\.png \(its content is not the one that was hashed\)"):
        prepare_store(changing, 32, tmp_path / "cache", workers=1, note=lambda text: None)


def test_one_bad_read_is_not_held_against_an_image(tmp_path: Path, folder: Path) -> None:
    """A bit that flipped on the way from the disk: the second reading is right."""
    source = opened(folder)
    content_hashes(source, tmp_path / "cache", workers=1)
    failed: list[int] = []

    def once_wrong(index: int) -> bytes:
        data = source.raw(index)
        if index == 3 and not failed:
            failed.append(index)
            return data[:-1] + bytes([data[-1] ^ 1])
        return data

    notes: list[str] = []
    store = prepare_store(replace(source, raw=once_wrong), 32, tmp_path / "cache", workers=1, note=notes.append)
    assert failed
    assert len(store) == 12
    assert not notes
