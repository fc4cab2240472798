"""The index of runs: believed only while the files are what they were, and never needed."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gcdbench.core.errors import StoreError
from gcdbench.runs import index as index_module
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.index import find_run, load_runs
from gcdbench.runs.index_file import IndexFile
from gcdbench.runs.record import DONE, FAILED, UNREADABLE
from gcdbench.testing.stored import edit_sealed

AddRun = Callable[..., RunDirectory]


@pytest.fixture
def runs(tmp_path: Path, add_run: AddRun, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four runs that were left alone for long enough to be indexed, in a store with a cache of its own."""
    monkeypatch.setenv("GCDBENCH_CACHE", str(tmp_path / "cache"))
    for seed in range(3):
        add_run(tmp_path / "runs", seed)
    add_run(tmp_path / "runs", 3, status=FAILED, extra={"error": "no luck"})
    monkeypatch.setattr(index_module, "SETTLED_NS", 0)
    return tmp_path / "runs"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Which runs were read from their files."""
    found: list[Path] = []
    original = index_module._read_entry

    def reading(place: str, contents: object):  # type: ignore[no-untyped-def]
        found.append(Path(place))
        return original(place, contents)  # type: ignore[arg-type]

    monkeypatch.setattr(index_module, "_read_entry", reading)
    return found


def as_read(runs: Path) -> list[tuple[object, ...]]:
    """Everything that a list tells of its runs."""
    return [
        (e.run_id, e.status, e.problem, e.settings, dict(e.identity), dict(e.scores), e.samples, e.called, e.path)
        for e in load_runs(runs)
    ]


def edit(runs: Path, statement: str, *values: object) -> None:
    path = IndexFile.of(runs).path
    assert path is not None
    with sqlite3.connect(path) as file:
        assert file.execute(statement, values).rowcount
    file.close()


def test_what_is_indexed_is_what_is_read(runs: Path, reads: list[Path]) -> None:
    first = as_read(runs)
    assert len(reads) == 4
    assert as_read(runs) == first
    assert len(reads) == 4
    assert not list(runs.glob(".*"))  # nothing of it is in the store
    [failed] = [entry for entry in load_runs(runs) if entry.status == FAILED]
    assert failed.problem == "no luck"


def test_a_changed_file_is_read_again_whatever_its_time_says(runs: Path, reads: list[Path]) -> None:
    load_runs(runs)
    file = load_runs(runs)[0].path / "scores.json"
    before = file.stat()
    edit_sealed(file, lambda table: table["sets"]["transductive"]["scores"].update(all=12.25))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert len(reads) == 4
    assert load_runs(runs)[0].scores["all"] == 12.25
    assert len(reads) == 5


def test_a_touched_file_with_the_same_content_need_not_be_taken_apart(runs: Path, reads: list[Path]) -> None:
    first = as_read(runs)
    for file in runs.rglob("*.json"):
        os.utime(file, (1, 1))
    assert as_read(runs) == first
    assert len(reads) == 4


def test_a_file_that_was_just_written_is_not_believed_to_stay(
    runs: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "SETTLED_NS", 10**12)
    load_runs(runs)
    load_runs(runs)
    assert len(reads) == 8


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE runs SET scored = scored || x'00'",
        "UPDATE runs SET scored = (SELECT max(scored) FROM runs)",
        "UPDATE runs SET head = replace(head, 'done', 'failed')",
        "UPDATE runs SET settings = (SELECT max(settings) FROM runs) || 'x'",
        "UPDATE runs SET stamp = stamp || 'x'",
        "UPDATE runs SET digest = 'x'",
        "UPDATE settings SET identity = replace(identity, 'known', 'other')",
        "DELETE FROM settings",
        "DELETE FROM runs",
        "UPDATE runs SET head = 7, scored = x'ff'",
    ],
)
def test_a_changed_index_changes_no_list(runs: Path, statement: str) -> None:
    first = as_read(runs)
    edit(runs, statement)
    assert as_read(runs) == first
    assert as_read(runs) == first


def test_a_row_of_another_run_is_not_taken_for_this_one(runs: Path) -> None:
    """Rows that were exchanged are each whole, and each wrong: the name is part of what is sealed."""
    first = as_read(runs)
    edit(runs, "UPDATE runs SET name = name || '.tmp'")
    names = [entry.path.relative_to(runs).as_posix() for entry in load_runs(runs, indexed=False)]
    edit(runs, "UPDATE runs SET name = ? WHERE name = ?", f"{names[0]}.x", names[1])
    assert as_read(runs) == first


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 100, b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_damaged_index_is_made_again(runs: Path, reads: list[Path], content: bytes) -> None:
    first = as_read(runs)
    path = IndexFile.of(runs).path
    assert path is not None
    path.write_bytes(content)
    assert as_read(runs) == first
    count = len(reads)
    assert as_read(runs) == first
    assert len(reads) == count


def test_flipped_bytes_in_the_index_change_no_list(runs: Path) -> None:
    import numpy as np

    first = as_read(runs)
    path = IndexFile.of(runs).path
    assert path is not None
    good, rng = path.read_bytes(), np.random.default_rng(0)
    for position in rng.integers(0, len(good), 150):
        bad = bytearray(good)
        bad[position] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(bad))
        assert as_read(runs) == first, position


def test_an_index_of_another_version_is_made_again(runs: Path, reads: list[Path]) -> None:
    first = as_read(runs)
    path = IndexFile.of(runs).path
    assert path is not None
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA user_version = 1")
        file.execute("DROP TABLE settings")
    file.close()
    assert as_read(runs) == first
    count = len(reads)
    assert as_read(runs) == first
    assert len(reads) == count


def test_a_locked_index_is_done_without(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = as_read(runs)
    monkeypatch.setattr("gcdbench.runs.index_file.LOCK_SECONDS", 0.05)
    path = IndexFile.of(runs).path
    assert path is not None
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    edit_sealed(load_runs(runs)[0].path / "scores.json", lambda table: table.update(metrics={"a": "b"}))
    assert as_read(runs) == first
    other.execute("COMMIT")
    other.close()
    assert as_read(runs) == first


def test_a_cache_that_cannot_be_used_is_done_without(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = as_read(runs)
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nowhere")):
        monkeypatch.setenv("GCDBENCH_CACHE", str(place))
        assert as_read(runs) == first
    folder = tmp_path / "folder"
    monkeypatch.setenv("GCDBENCH_CACHE", str(folder))
    path = IndexFile.of(runs).path
    assert path is not None
    path.mkdir(parents=True)  # a folder in the place of the file
    assert as_read(runs) == first


def test_readers_and_writers_at_once(runs: Path) -> None:
    first = as_read(runs)
    problems: list[object] = []
    file = load_runs(runs)[0].path / "env.json"
    end = time.monotonic() + 1.5

    def look() -> None:
        while time.monotonic() < end:
            if as_read(runs) != first:
                problems.append("another list")
            os.utime(file)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def test_runs_that_are_gone_leave_the_index(runs: Path, add_run: AddRun) -> None:
    import shutil

    entries = load_runs(runs)
    shutil.rmtree(entries[0].path)
    add_run(runs, 9)
    names = {entry.run_id for entry in load_runs(runs)}
    assert entries[0].run_id not in names
    assert len(names) == 4
    path = IndexFile.of(runs).path
    assert path is not None
    with sqlite3.connect(path) as file:
        assert {name.rpartition("/")[2] for (name,) in file.execute("SELECT name FROM runs")} == names
    file.close()


def test_two_stores_have_two_indices(tmp_path: Path, runs: Path, add_run: AddRun) -> None:
    add_run(tmp_path / "other", 0)
    assert IndexFile.of(tmp_path / "other").path != IndexFile.of(runs).path
    assert IndexFile.of(runs).path == IndexFile.of(runs / ".." / runs.name).path
    assert len(load_runs(tmp_path / "other")) == 1
    assert len(load_runs(runs)) == 4


def test_a_run_that_becomes_unreadable_is_noticed(runs: Path) -> None:
    load_runs(runs)
    for name in ("env.json", "events.jsonl", "scores.json", "run.json"):
        path = load_runs(runs)[0].path
        content = (path / name).read_bytes()
        (path / name).write_bytes(content[: len(content) // 2])
        assert load_runs(runs)[0].status == UNREADABLE, name
        (path / name).write_bytes(content)
        assert load_runs(runs)[0].status == DONE, name


def test_a_run_is_found_by_the_start_of_its_id(runs: Path) -> None:
    entries = load_runs(runs)
    assert find_run(runs, entries[0].run_id[:10]) == entries[0].path
    assert find_run(runs, str(entries[0].path)) == entries[0].path
    with pytest.raises(StoreError, match=r"4 run ids|no run ''"):
        find_run(runs, "")
    with pytest.raises(StoreError, match="no run 'zzz'"):
        find_run(runs, "zzz")
    (entries[0].path.parent / f"{entries[1].run_id[:8]}-copy").mkdir()  # no run: it holds no record
    assert find_run(runs, entries[1].run_id[:8]) == entries[1].path
