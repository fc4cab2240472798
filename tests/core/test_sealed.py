"""Sealed files: every change is found, whatever the size, the place and the number of pieces."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcdbench.core import sealed
from gcdbench.core.sealed import DamagedError, read_sealed, seal, seal_bytes, seal_size, verify


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealed, "PIECE", 64)


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 128, 1000])
@pytest.mark.parametrize("cores", [1, 3])
def test_what_was_sealed_is_intact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, cores: int) -> None:
    monkeypatch.setattr(sealed, "available_cores", lambda: cores)
    content = np.random.default_rng(size).bytes(size)
    for name, write in (("a", lambda path: path.write_bytes(content)), ("b", lambda path: None)):
        path = tmp_path / name
        write(path)
        if name == "a":
            seal(path)
        else:
            path.write_bytes(seal_bytes(content))
        verify(path)
        assert read_sealed(path) == content
        assert path.stat().st_size == size + seal_size(size)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@given(size=st.integers(0, 300), at=st.floats(0, 1), bit=st.integers(0, 7))
def test_any_flipped_bit_is_found(tmp_path_factory: pytest.TempPathFactory, size: int, at: float, bit: int) -> None:
    """In the content, in the checksums of the pieces, in the checksum of the checksums, in the length."""
    path = tmp_path_factory.getbasetemp() / "flipped"
    content = bytearray(seal_bytes(bytes(i % 251 for i in range(size))))
    content[int(at * (len(content) - 1))] ^= 1 << bit
    path.write_bytes(content)
    for read in (verify, read_sealed):
        with pytest.raises(DamagedError):
            read(path)


@given(size=st.integers(1, 300), keep=st.floats(0, 1, exclude_max=True))
def test_a_file_that_was_cut_is_found(tmp_path_factory: pytest.TempPathFactory, size: int, keep: float) -> None:
    path = tmp_path_factory.getbasetemp() / "cut"
    content = seal_bytes(bytes(size))
    path.write_bytes(content[: int(keep * len(content))])
    with pytest.raises(DamagedError):
        verify(path)


def test_how_much_is_damaged_is_told(tmp_path: Path) -> None:
    path = tmp_path / "file"
    content = bytearray(seal_bytes(b"x" * 640))
    content[70:200] = bytes(130)  # pieces 1, 2 and 3
    path.write_bytes(content)
    with pytest.raises(DamagedError, match="3 of its 10 pieces"):
        verify(path)


def test_pieces_that_changed_places_are_found(tmp_path: Path) -> None:
    path = tmp_path / "file"
    content = bytearray(seal_bytes(b"a" * 64 + b"b" * 64))
    content[:128] = b"b" * 64 + b"a" * 64
    path.write_bytes(content)
    with pytest.raises(DamagedError):
        verify(path)


def test_a_directory_in_the_place_of_a_file_is_damage_and_nothing_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"")
    for read in (verify, read_sealed):
        with pytest.raises(DamagedError):
            read(tmp_path / "folder")
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "absent")
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "file" / "below")


def test_a_sector_that_cannot_be_read_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(seal_bytes(bytes(500)))

    def fail(*arguments: object) -> bytes:
        raise OSError(5, os.strerror(5))

    monkeypatch.setattr(sealed, "_digest_file", fail)
    with pytest.raises(DamagedError, match="Input/output error"):
        verify(path)
