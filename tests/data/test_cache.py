"""The cache: listing, clearing, trimming by last use, and what killed builders left."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock, Timeout

from gcdbench.core.cache_upkeep import clear_cache, list_cache, remove_leftovers, trim_cache
from gcdbench.core.disk_space import parse_size
from gcdbench.core.errors import ConfigError, StoreError, UnknownName
from gcdbench.core.files import write_bytes


def entry(cache: Path, kind: str, key: str, size: int, used: float) -> Path:
    folder = cache / kind / key
    folder.mkdir(parents=True)
    (folder / "data.npy").write_bytes(b"x")
    (folder / "meta.json").write_text(json.dumps({"bytes": size, "title": f"{kind} {key}"}))
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
    (filled / "stores" / "broken").mkdir()
    (filled / "stores" / "broken" / "meta.json").write_text("{")
    entry(filled, "banks", ".tmp-unfinished", 800, 4000)
    assert keys(filled) == ["s-old", "b-mid", "s-new"]
    assert [item.bytes for item in list_cache(filled)] == [100, 400, 200]
    assert list_cache(filled / "nowhere") == []


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
    for name in ("stores/.tmp-dead", "stores/.tmp-alive", "banks/.tmp-gone", "banks/.tmp-busy"):
        (filled / name).mkdir(parents=True)
    (filled / "locks").mkdir()
    with FileLock(filled / "locks" / "store-alive.lock"), FileLock(filled / "banks" / "busy.lock"):
        remove_leftovers(filled)
    assert {path.name for path in filled.glob("*/*") if path.is_dir()} == {
        "s-old",
        "s-new",
        "b-mid",
        ".tmp-alive",
        ".tmp-busy",
    }


def test_a_new_builder_waits_until_its_predecessors_leftovers_are_gone(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise its own, new folder, which has the same name, would be deleted."""
    locks = {"stores": filled / "locks" / "store-x.lock", "banks": filled / "banks" / "x.lock"}
    deleted = []

    def look(folder: Path, **settings: object) -> None:
        with pytest.raises(Timeout):
            FileLock(locks[folder.parent.name], timeout=0).acquire()
        deleted.append(folder.parent.name)

    for kind in locks:
        (filled / kind / ".tmp-x").mkdir()
    monkeypatch.setattr(shutil, "rmtree", look)
    remove_leftovers(filled)
    assert sorted(deleted) == ["banks", "stores"]


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
