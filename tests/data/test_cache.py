"""The cache: listing, clearing, trimming by last use, and what killed builders left."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock, Timeout

from gcdbench.core.cache_upkeep import CacheEntry, clear_cache, list_cache, remove_leftovers, trim_cache
from gcdbench.core.disk_space import parse_size
from gcdbench.core.errors import ConfigError, StoreError, UnknownName
from gcdbench.core.files import write_bytes


def entry(cache: Path, kind: str, key: str, size: int, used: float) -> Path:
    folder = cache / kind / key
    folder.mkdir(parents=True)
    meta = json.dumps({"title": f"{kind} {key}"})
    (folder / "data.npy").write_bytes(bytes(size - len(meta)))
    (folder / "meta.json").write_text(meta)
    os.utime(folder / "meta.json", (used, used))
    return folder


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    entry(tmp_path, "stores", "s-old", 100, 1000)
    entry(tmp_path, "stores", "s-new", 200, 3000)
    entry(tmp_path, "banks", "b-mid", 400, 2000)
    (tmp_path / "hashes").mkdir()
    (tmp_path / "hashes" / "x.npy").write_bytes(b"y")
    return tmp_path


def keys(cache: Path) -> list[str]:
    return [item.key for item in list_cache(cache)]


def test_listing_is_by_last_use_and_ignores_what_is_not_an_entry(filled: Path) -> None:
    (filled / "stores" / "a-file").write_text("nothing of ours")
    entry(filled, "banks", ".tmp-unfinished", 800, 4000)
    assert keys(filled) == ["s-old", "b-mid", "s-new"]
    assert [item.bytes for item in list_cache(filled)] == [100, 400, 200]
    assert list_cache(filled / "nowhere") == []


@pytest.mark.parametrize("damage", ["{", "[]", None, "directory"])
def test_an_entry_whose_description_is_damaged_can_still_be_seen_and_deleted(filled: Path, damage: str | None) -> None:
    meta = filled / "banks" / "b-mid" / "meta.json"
    meta.unlink()
    if damage == "directory":
        meta.mkdir()
    elif damage is not None:
        meta.write_text(damage)
    assert {item.key: item.title for item in list_cache(filled)}["b-mid"] == "damaged"
    clear_cache(filled, key="b-mid")
    assert keys(filled) == ["s-old", "s-new"]


@pytest.mark.parametrize("delete", [clear_cache, lambda cache: trim_cache(cache, 0)], ids=["clear", "trim"])
def test_what_another_process_is_making_stays(filled: Path, delete: Callable[[Path], list[CacheEntry]]) -> None:
    (filled / "locks").mkdir()
    with FileLock(filled / "locks" / "banks-b-mid.lock"):
        assert [item.key for item in delete(filled)] == ["s-old", "s-new"]
    assert keys(filled) == ["b-mid"]


@pytest.mark.parametrize(
    ("limit", "left"), [(700, ["s-old", "b-mid", "s-new"]), (699, ["b-mid", "s-new"]), (500, ["s-new"]), (0, [])]
)
def test_trimming_deletes_the_longest_unused(filled: Path, limit: int, left: list[str]) -> None:
    trim_cache(filled, limit)
    assert keys(filled) == left
    assert {path.name for path in filled.glob("*/*") if path.is_dir()} == set(left)


def test_clearing(filled: Path) -> None:
    assert [item.key for item in clear_cache(filled, key="s-old")] == ["s-old"]
    assert [item.key for item in clear_cache(filled, kind="banks")] == ["b-mid"]
    assert (filled / "hashes" / "x.npy").exists()
    clear_cache(filled)
    assert keys(filled) == []
    assert not (filled / "hashes").exists()


def test_a_key_that_is_not_there_is_an_error_that_names_what_is(filled: Path) -> None:
    with pytest.raises(UnknownName, match="no cache entry named 'typo'; known: b-mid, s-new, s-old"):
        clear_cache(filled, key="typo")
    with pytest.raises(UnknownName, match="known: b-mid"):
        clear_cache(filled, kind="banks", key="s-old")
    assert len(keys(filled)) == 3


def test_leftovers_of_killed_builders_go_and_those_at_work_stay(filled: Path) -> None:
    for name in ("stores/.tmp-dead", "stores/.tmp-alive", "stores/s-old", "banks/b-mid", "banks/gone"):
        (filled / name).mkdir(parents=True, exist_ok=True)
        (filled / name / ".tmp-data.npy").write_bytes(b"x")
    (filled / "locks").mkdir()
    with FileLock(filled / "locks" / "stores-alive.lock"), FileLock(filled / "locks" / "banks-b-mid.lock"):
        remove_leftovers(filled)
    assert {str(path.relative_to(filled)) for path in filled.glob("*/*") if path.is_dir()} == {
        "stores/s-old",
        "stores/s-new",
        "banks/b-mid",
        "stores/.tmp-alive",
    }
    assert [path.parent.name for path in filled.glob("*/*/.tmp-*")] == [".tmp-alive", "b-mid"]


def test_a_new_builder_waits_until_its_predecessors_leftovers_are_gone(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise its own, new file, which has the same name, would be deleted."""
    deleted = []

    def look(path: Path, **settings: object) -> None:
        with pytest.raises(Timeout):
            FileLock(filled / "locks" / "banks-b-mid.lock", timeout=0).acquire()
        deleted.append(path.name)

    (filled / "banks" / "b-mid" / ".tmp-data.npy").write_bytes(b"x")
    monkeypatch.setattr(Path, "unlink", look)
    remove_leftovers(filled)
    assert ".tmp-data.npy" in deleted


@pytest.mark.parametrize("delete", [clear_cache, lambda cache: trim_cache(cache, 0)], ids=["clear", "trim"])
def test_a_killed_deletion_is_finished_by_the_next(
    filled: Path, monkeypatch: pytest.MonkeyPatch, delete: Callable[[Path], object]
) -> None:
    """An entry is whole and listed, or it is a leftover."""

    def killed(*arguments: object, **settings: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            delete(filled)
    assert keys(filled) == ["b-mid", "s-new"]
    delete(filled)
    assert [path for path in filled.glob("*/*") if path.is_dir()] == []


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("20GB", 20 * 10**9),
        ("1.5 mb", 1_500_000),
        ("700", 700),
        ("3kB", 3000),
        ("1TB", 10**12),
        ("20G", 20 * 10**9),
        ("20GiB", 20 * 2**30),
        ("1.5 kib", 1536),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-3MB", "3 XB", "3.GB.", "3iB", 400 * "9"])
def test_wrong_sizes(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_size(text)


def test_a_small_file_that_cannot_be_written_leaves_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "a.txt").write_bytes(b"before")
    monkeypatch.setattr("os.fsync", no_room)
    with pytest.raises(StoreError, match="No space left"):
        write_bytes(tmp_path / "a.txt", b"after")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_bytes() == b"before"
