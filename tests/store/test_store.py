"""The store: atomic writes, states, hashes, and an index that may vanish."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from gcdbench.core.errors import StoreError
from gcdbench.core.files import read_json, write_bytes, write_json
from gcdbench.runs import directory as rundir
from gcdbench.runs.directory import DONE, FAILED, INTERRUPTED, RUNNING, STALE, UNREADABLE, RunDirectory
from gcdbench.runs.index import INDEX_NAME, find_run, load_runs
from gcdbench.runs.predictions import ScoredSet, load_arrays, load_scored_set, save_arrays


def begin(directory: RunDirectory) -> None:
    directory.begin({"run_id": directory.path.name, "method": "m"}, config_toml="", environment={})


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return RunDirectory.at(tmp_path / "runs", "data", "method", "abc123")


def test_a_run_goes_through_its_states(directory: RunDirectory) -> None:
    with directory.writing():
        begin(directory)
        assert directory.status() == RUNNING
    assert directory.status() == INTERRUPTED  # nobody holds it and it never ended
    with directory.writing():
        begin(directory)
        directory.fail("no luck", "trace")
    assert directory.status() == FAILED
    assert directory.record()["error"] == "no luck"
    with directory.writing():
        begin(directory)
        directory.checkpoint_dir.mkdir()
        directory.finish()
    assert directory.status() == DONE
    assert not directory.checkpoint_dir.exists()
    assert "error" not in directory.record()


def test_silent_runs_of_another_machine_are_stale(directory: RunDirectory) -> None:
    with directory.writing():
        begin(directory)
    write_json(directory.record_path, {**directory.record(), "host": "elsewhere"})
    os.utime(directory.path / "heartbeat")
    assert directory.status() == RUNNING
    os.utime(directory.path / "heartbeat", (0, 0))
    assert directory.status() == STALE


def _hold(path: str) -> None:
    directory = RunDirectory(Path(path))
    with directory.writing():
        begin(directory)
        time.sleep(60)


def test_one_writer_only_and_a_killed_one_leaves_an_interrupted_run(directory: RunDirectory) -> None:
    child = multiprocessing.get_context("spawn").Process(target=_hold, args=(str(directory.path),))
    child.start()
    deadline = time.monotonic() + 30
    while not directory.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert directory.status() == RUNNING
    with pytest.raises(StoreError, match="Another process"), directory.writing():
        raise AssertionError("two writers")
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    assert directory.status() == INTERRUPTED


def test_a_kill_while_a_finished_run_is_begun_again_leaves_it_whole_or_interrupted(
    directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stop before each write and each removal in turn: never is a run done without its predictions."""

    class Killed(BaseException):
        pass

    steps = 0

    def dying(function, allowed: int):
        def step(*arguments, **named):
            nonlocal steps
            if steps >= allowed:
                raise Killed
            steps += 1
            return function(*arguments, **named)

        return step

    for allowed in range(20):
        with directory.writing():
            begin(directory)
            save_arrays(directory.predictions_dir / "transductive.npz", {"ids": np.arange(3)})
            write_json(directory.scores_path, {"sets": {}})
            directory.finish()
        steps = 0
        try:
            with monkeypatch.context() as patch, directory.writing():
                for owner, name in (
                    (rundir, "write_text"),
                    (rundir, "write_json"),
                    (shutil, "rmtree"),
                    (Path, "unlink"),
                ):
                    patch.setattr(owner, name, dying(getattr(owner, name), allowed))
                begin(directory)
        except Killed:
            whole = (directory.predictions_dir / "transductive.npz").exists() and directory.scores_path.exists()
            assert directory.status() == INTERRUPTED or (directory.status() == DONE and whole), allowed
        else:
            break
    assert 0 < allowed < 19


def test_a_look_at_the_state_does_not_keep_a_writer_out(directory: RunDirectory) -> None:
    directory.path.mkdir(parents=True)
    looking = threading.Event()

    def look() -> None:
        with directory._lock():
            looking.set()
            time.sleep(0.2)

    threading.Thread(target=look).start()
    assert looking.wait(10)
    with directory.writing():
        begin(directory)
    assert directory.exists()


def test_a_run_in_a_store_that_is_read_only_here_is_running_while_its_heart_beats(
    directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with directory.writing():
        begin(directory)

    def refused(*arguments: object, **named: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("gcdbench.runs.directory.FileLock.acquire", refused)
    assert directory.status() == RUNNING
    os.utime(directory.path / "heartbeat", (0, 0))
    assert directory.status() == INTERRUPTED


def test_a_failed_write_leaves_the_old_file_and_no_rubbish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_bytes(path, b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left"):
        write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_torn_event_lines_are_skipped(directory: RunDirectory) -> None:
    with directory.writing():
        begin(directory)
        directory.append_event({"type": "epoch", "epoch": 0})
    with (directory.path / "events.jsonl").open("a") as file:
        file.write('{"type": "epo')
    assert [event["epoch"] for event in directory.events()] == [0]


def test_another_schema_is_refused_with_a_sentence(directory: RunDirectory) -> None:
    with directory.writing():
        begin(directory)
    write_json(directory.record_path, {**directory.record(), "schema": 99})
    with pytest.raises(StoreError, match="schema 99"):
        directory.record()
    [entry] = load_runs(directory.path.parents[2])
    assert entry.status == UNREADABLE


def scored() -> ScoredSet:
    return ScoredSet(
        ids=np.arange(6),
        cluster=np.array([0, 0, 1, 1, 2, 2]),
        y_true=np.array([0, 0, 1, 1, 2, 2]),
        group=np.arange(6),
        is_old=np.array([True, False, False]),
        anchored=True,
        k_hat=3,
        confidence=np.linspace(0, 1, 6, dtype=np.float32),
    )


def test_predictions_come_back_as_they_were_and_their_bytes_repeat(tmp_path: Path) -> None:
    first = save_arrays(tmp_path / "a.npz", scored().arrays())
    second = save_arrays(tmp_path / "b.npz", scored().arrays())
    assert first == second
    loaded = load_scored_set(tmp_path / "a.npz", first)
    for name, value in scored().arrays().items():
        assert np.array_equal(loaded.arrays()[name], value), name


def test_truncated_or_changed_predictions_are_detected(tmp_path: Path) -> None:
    sha = save_arrays(tmp_path / "a.npz", scored().arrays())
    content = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(content[:-20])
    with pytest.raises(StoreError, match="truncated or was changed"):
        load_scored_set(tmp_path / "a.npz", sha)


def test_a_pickle_in_an_array_file_is_never_opened(tmp_path: Path) -> None:
    np.savez(tmp_path / "evil.npz", ids=np.array([{"a": 1}], dtype=object))
    with pytest.raises(StoreError, match="not a valid array file"):
        load_arrays(tmp_path / "evil.npz", None)


def test_the_index_is_disposable_and_follows_the_files(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for name in ("a1", "a2", "b1"):
        directory = RunDirectory.at(runs, "data", "method", name)
        with directory.writing():
            begin(directory)
            write_json(directory.scores_path, {"sets": {}, "name": name})
            directory.finish()
    first = {e.run_id: e.scores for e in load_runs(runs)}
    assert (runs / INDEX_NAME).is_file()
    assert {e.run_id: e.scores for e in load_runs(runs)} == first
    (runs / INDEX_NAME).write_text("{ not json")
    assert {e.run_id: e.scores for e in load_runs(runs)} == first
    (runs / INDEX_NAME).unlink()
    write_json(RunDirectory.at(runs, "data", "method", "b1").scores_path, {"sets": {}, "name": "changed!"})
    assert {e.run_id: e.scores["name"] for e in load_runs(runs)}["b1"] == "changed!"
    assert find_run(runs, "b").name == "b1"
    with pytest.raises(StoreError, match="2 run ids"):
        find_run(runs, "a")
    with pytest.raises(StoreError, match="no run 'zzz'"):
        find_run(runs, "zzz")


def test_broken_json_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps({"a": 1})[:-2])
    with pytest.raises(StoreError, match=r"x\.json"):
        read_json(tmp_path / "x.json")
