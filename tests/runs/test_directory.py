"""Run directories: atomic writes, states, locks and hashes."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gcdbench.core.errors import StoreError
from gcdbench.core.files import read_json, write_bytes
from gcdbench.core.identity import run_id
from gcdbench.runs.attempt import Attempt
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.events import Note
from gcdbench.runs.index import load_runs
from gcdbench.runs.predictions import ScoredSet, load_arrays, load_scored_set, save_arrays
from gcdbench.runs.record import DONE, FAILED, INTERRUPTED, RUNNING, STALE, UNREADABLE, Record, Scores, SplitHeader
from gcdbench.testing.stored import edit_sealed, fake_environment


def new_attempt(directory: RunDirectory) -> Attempt:
    identity = {"seed": 0, "method": "m", "method_version": "1", "dataset": "data", "images": "", "manifest_sha256": ""}
    identity |= {"config": {}, "protocol": {"k_policy": "known"}}
    record = Record(
        path=directory.path,
        run_id=run_id(identity),
        identity=identity,
        method="m",
        dataset="data",
        preset="smoke",
        protocol="half",
        seed=0,
        backbone="none",
        image_size=32,
        views="none",
        split=SplitHeader(),
    )
    return Attempt(directory, record)


def begin(directory: RunDirectory) -> Attempt:
    attempt = new_attempt(directory)
    attempt.begin(config_toml="", environment=fake_environment())
    return attempt


def finish(attempt: Attempt, **changes: object) -> None:
    attempt.finish(replace(attempt.record, **changes), Scores())  # type: ignore[arg-type]


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return RunDirectory.at(tmp_path / "runs", "data", "method", "abc123")


def test_a_run_goes_through_its_states(directory: RunDirectory) -> None:
    with directory.writing():
        begin(directory)
        assert directory.status() == RUNNING
    assert directory.status() == INTERRUPTED  # nobody holds it and it never ended
    with directory.writing():
        begin(directory).fail("no luck", "trace")
    assert directory.status() == FAILED
    assert directory.record().error == "no luck"
    with directory.writing():
        attempt = begin(directory)
        attempt.checkpoint_dir.mkdir()
        finish(attempt)
    assert directory.status() == DONE
    assert not attempt.checkpoint_dir.exists()
    assert not directory.record().error


def test_silent_runs_of_another_machine_are_stale(directory: RunDirectory) -> None:
    with directory.writing():
        begin(directory)
    edit_sealed(directory.record_path, lambda record: record.update(host="elsewhere"))
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
        begin(directory).append_event(Note(message="first"))
    with (directory.path / "events.jsonl").open("a") as file:
        file.write('{"type": "no')
    assert [event.message for event in directory.record().events] == ["first"]
    with directory.writing():  # a line of its own: the torn one must not swallow what follows
        begin(directory).append_event(Note(message="second"))
    assert [event.message for event in directory.record().events] == ["first", "second"]


def test_another_schema_is_refused_with_a_sentence(directory: RunDirectory) -> None:
    with directory.writing():
        begin(directory)
    edit_sealed(directory.record_path, lambda record: record.update(schema=99))
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


def test_broken_json_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps({"a": 1})[:-2])
    with pytest.raises(StoreError, match=r"x\.json"):
        read_json(tmp_path / "x.json")
