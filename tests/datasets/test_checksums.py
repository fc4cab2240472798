"""Remembered checksums of large files."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from gcdbench.datasets.checksums import file_checksum


@pytest.mark.parametrize("damage", ["flipped", "empty", "directory", "of version 0.1"])
def test_a_damaged_memory_does_not_accuse_a_good_file(tmp_path: Path, damage: str) -> None:
    file = tmp_path / "download.npz"
    file.write_bytes(b"content" * 1000)
    right = "md5:" + hashlib.md5(file.read_bytes(), usedforsecurity=False).hexdigest()
    assert file_checksum(file, "md5", tmp_path / "cache") == right
    [memory] = (tmp_path / "cache" / "checksums").iterdir()
    content = bytearray(memory.read_bytes())
    memory.unlink()
    if damage == "directory":
        memory.mkdir()
    elif damage == "of version 0.1":
        memory.write_text("md5:" + 32 * "0")
    else:
        content[6] ^= 1
        memory.write_bytes(content if damage == "flipped" else b"")
    for _ in range(2):
        assert file_checksum(file, "md5", tmp_path / "cache") == right


def test_what_is_remembered_is_not_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "download.npz"
    file.write_bytes(b"content")
    first = file_checksum(file, "sha256", tmp_path / "cache")
    monkeypatch.setattr(hashlib, "new", lambda *arguments, **settings: pytest.fail("computed again"))
    assert file_checksum(file, "sha256", tmp_path / "cache") == first
