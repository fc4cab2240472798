"""A finished run that is done again: at every kill point one complete result counts, the old one or the new one."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from gcdbench.core.files import write_json
from gcdbench.plugins.manager import PluginManager
from gcdbench.runs.attempt import Attempt, attempt_home
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.evaluate import score_run
from gcdbench.runs.events import Note, RepetitionFailed
from gcdbench.runs.index import load_runs
from gcdbench.runs.integrity import check_run
from gcdbench.runs.predictions import load_predictions, save_arrays
from gcdbench.runs.record import DONE, FAILED, INTERRUPTED, StoredFile
from gcdbench.runs.recovery import recover
from gcdbench.runs.request import Request
from gcdbench.testing.stored import FakeRun, edit_sealed, fake_environment, fake_predictions, write_fake_run
from tests.runs.kills import count_kill_points

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a forked child")
REQUEST = Request(method="pixels-kmeans", dataset="phantom", preset="smoke")
OLD, NEW = (FakeRun(request=REQUEST, accuracy=accuracy, samples=48) for accuracy in (0.5, 0.9))


@pytest.fixture(scope="module")
def manager() -> PluginManager:
    return PluginManager(points=[])


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process loses nothing that it has written; only a crash of the machine does."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def write(runs: Path, manager: PluginManager) -> RunDirectory:
    """The old result, with a model and pictures, as real runs have them."""
    directory = write_fake_run(runs, OLD, manager)
    (directory.path / "model.safetensors").write_bytes(b"old weights")
    (directory.path / "notes.txt").write_text("the user's own")
    return directory


def begin_again(directory: RunDirectory) -> Attempt:
    attempt = Attempt(directory, replace(directory.record(), predictions={}, files={}))
    attempt.begin(config_toml='dataset = "phantom"\n', environment=fake_environment())
    return attempt


def do_again(directory: RunDirectory, manager: PluginManager) -> None:
    """What the runner does with a run that shall be done again."""
    with directory.writing():
        recover(directory)
        attempt = begin_again(directory)
        attempt.append_event(Note(message="again"))
        attempt.checkpoint_dir.mkdir(exist_ok=True)
        (attempt.checkpoint_dir / "latest.pt").write_bytes(b"state")
        file = "predictions/transductive.npz"
        sha256 = save_arrays(attempt.home / file, fake_predictions(NEW).arrays())
        (attempt.home / "model.safetensors").write_bytes(b"new weights")
        record = replace(attempt.record, predictions={"transductive": StoredFile(file=file, sha256=sha256)})
        attempt.finish(record, score_run(record, manager))


def require_one_result(directory: RunDirectory, manager: PluginManager, hashes: dict[str, bytes]) -> bool:
    """The run must be done and whole; returns whether it is the new one."""
    record = directory.record()
    assert record.status == DONE
    load_predictions(record, "transductive")
    assert record.scores is not None
    assert record.scores.sets == score_run(record, manager).sets
    assert check_run(directory, manager).damages == ()
    [entry] = load_runs(directory.path.parents[2])
    assert entry.status == DONE
    assert entry.scores["all"] == record.scores.sets["transductive"].scores["all"]
    new = record.predictions["transductive"].sha256 == hashes["new"].decode()
    model = (record.home / "model.safetensors").read_bytes()
    assert model == (b"new weights" if new else b"old weights")
    return new


@needs_fork
def test_whenever_a_repetition_is_killed_one_result_is_complete(tmp_path: Path, manager: PluginManager) -> None:
    reference = write(tmp_path / "reference", manager)
    do_again(reference, manager)
    hashes = {"new": reference.record().predictions["transductive"].sha256.encode()}
    directory = RunDirectory(tmp_path / "runs" / reference.path.relative_to(tmp_path / "reference"))
    found: list[bool] = []

    def prepare() -> None:
        shutil.rmtree(tmp_path / "runs", ignore_errors=True)
        write(tmp_path / "runs", manager)

    def check(point: int) -> None:
        found.append(require_one_result(directory, manager, hashes))
        with directory.writing():
            recover(directory)  # what the next process does first
        assert require_one_result(directory, manager, hashes) == found[-1], point
        assert not directory.record().folder
        assert (directory.path / "notes.txt").exists()
        do_again(directory, manager)
        assert require_one_result(directory, manager, hashes)
        assert not directory.next_dir.exists()

    points = count_kill_points(lambda: do_again(directory, manager), prepare, check)
    assert points == len(found) > 30
    assert not found[0]
    assert found == sorted(found)  # from one moment on, and only from there, the new result counts
    assert True in found


@needs_fork
def test_a_recovery_may_be_killed_too(tmp_path: Path, manager: PluginManager) -> None:
    """Kill the move to the usual place at each of its steps, and the recovery after it at each of its own."""
    directory = write(tmp_path / "runs", manager)
    do_again(directory, manager)
    hashes = {"new": directory.record().predictions["transductive"].sha256.encode()}
    committed = tmp_path / "committed"

    def stop_after_commit() -> None:
        shutil.rmtree(tmp_path / "runs")
        write(tmp_path / "runs", manager)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("gcdbench.runs.attempt.settle", lambda directory: None)
            do_again(directory, manager)

    stop_after_commit()
    assert directory.record().folder
    assert require_one_result(directory, manager, hashes)
    shutil.copytree(tmp_path / "runs", committed)

    def prepare() -> None:
        shutil.rmtree(tmp_path / "runs")
        shutil.copytree(committed, tmp_path / "runs")

    def mend() -> None:
        with directory.writing():
            recover(directory)

    def check(point: int) -> None:
        assert require_one_result(directory, manager, hashes), point
        mend()
        assert require_one_result(directory, manager, hashes), point
        assert not directory.record().folder

    assert count_kill_points(mend, prepare, check) > 10


def test_a_repetition_that_fails_leaves_the_result_and_says_why(tmp_path: Path, manager: PluginManager) -> None:
    directory = write(tmp_path / "runs", manager)
    before = directory.record()
    with directory.writing():
        begin_again(directory).fail("no luck", "trace")
    assert directory.record() == before
    assert directory.status() == DONE
    [event] = [event for event in directory.record().events if isinstance(event, RepetitionFailed)]
    assert event.error == "no luck"
    assert RunDirectory(directory.next_dir).record().status == FAILED
    assert check_run(directory, manager).damages == ()


def test_an_interrupted_repetition_is_continued_with_its_checkpoint(tmp_path: Path, manager: PluginManager) -> None:
    directory = write(tmp_path / "runs", manager)
    with directory.writing():
        attempt = begin_again(directory)
        attempt.checkpoint_dir.mkdir()
        (attempt.checkpoint_dir / "latest.pt").write_bytes(b"state")
        attempt.interrupt()
    assert directory.status() == DONE
    assert RunDirectory(directory.next_dir).record().status == INTERRUPTED
    with directory.writing():
        again = begin_again(directory)
        assert (again.checkpoint_dir / "latest.pt").read_bytes() == b"state"


def test_a_result_whose_record_is_damaged_is_not_written_over(tmp_path: Path, manager: PluginManager) -> None:
    directory = write(tmp_path / "runs", manager)
    record = directory.record()
    directory.record_path.write_text("{")
    assert attempt_home(directory) == directory.next_dir
    with directory.writing():
        attempt = Attempt(directory, replace(record, predictions={}, files={}))
        attempt.begin(config_toml="", environment=fake_environment())
    assert (directory.path / "predictions" / "transductive.npz").is_file()


# What gcdbench 0.1 did -----------------------------------------------------------------------------------------------


def set_aside_as_0_1(directory: RunDirectory) -> None:
    """What version 0.1 did with a finished run before it began again."""
    record = json.loads(directory.record_path.read_text())
    previous = directory.path / "previous"
    previous.mkdir()
    write_json(directory.record_path, {**record, "status": "interrupted"})
    kept = {"lock", "heartbeat", "run.json", "previous", "checkpoint"}
    for entry in list(directory.path.iterdir()):
        if entry.name not in kept:
            entry.rename(previous / entry.name)
    write_json(previous / "run.json", record)


def as_version_1(directory: RunDirectory) -> None:
    """Make a made-up run look as 0.1 would have written it: no seals, no hashes of files."""
    for name in ("run.json", "scores.json", "env.json"):
        table = json.loads((directory.path / name).read_text())
        for key in ("sha256", "files"):
            table.pop(key, None)
        (directory.path / name).write_text(json.dumps({**table, "schema": 1}))


@needs_fork
def test_what_a_killed_0_1_had_set_aside_comes_back(tmp_path: Path, manager: PluginManager) -> None:
    def prepare() -> None:
        shutil.rmtree(tmp_path / "runs", ignore_errors=True)
        as_version_1(write_fake_run(tmp_path / "runs", OLD, manager))

    prepare()
    [path] = (tmp_path / "runs").glob("*/*/*")
    directory = RunDirectory(path)
    expected = directory.record().predictions["transductive"].sha256

    def check(point: int) -> None:
        with directory.writing():
            recover(directory)
        record = directory.record()
        assert record.status == DONE, point
        assert record.predictions["transductive"].sha256 == expected
        load_predictions(record, "transductive")
        assert record.scores is not None
        assert not (directory.path / "previous").exists()

    points = count_kill_points(lambda: set_aside_as_0_1(directory), prepare, check)
    assert points > 8
    check(points + 1)


def test_a_set_aside_run_whose_predictions_are_gone_is_not_called_done(tmp_path: Path, manager: PluginManager) -> None:
    directory = write_fake_run(tmp_path / "runs", OLD, manager)
    as_version_1(directory)
    set_aside_as_0_1(directory)
    (directory.path / "previous" / "predictions" / "transductive.npz").write_bytes(b"")
    with directory.writing():
        recover(directory)
    assert directory.status() == INTERRUPTED
    [entry] = load_runs(tmp_path / "runs")
    assert "previous" in entry.problem


def test_a_leftover_of_a_repetition_that_ended_does_not_come_back(tmp_path: Path, manager: PluginManager) -> None:
    directory = write_fake_run(tmp_path / "runs", NEW, manager)
    old = write_fake_run(tmp_path / "old", OLD, manager)
    shutil.copytree(old.path, directory.path / "previous")
    before = hashlib.sha256((directory.path / "predictions" / "transductive.npz").read_bytes()).hexdigest()
    with directory.writing():
        recover(directory)
    assert hashlib.sha256((directory.path / "predictions" / "transductive.npz").read_bytes()).hexdigest() == before
    assert not (directory.path / "previous").exists()


def test_a_record_that_points_outside_is_refused(tmp_path: Path, manager: PluginManager) -> None:
    directory = write_fake_run(tmp_path / "runs", OLD, manager)
    edit_sealed(directory.record_path, lambda record: record.update(folder="../../elsewhere"))
    [entry] = load_runs(tmp_path / "runs")
    assert "not a file of a run" in entry.problem
