"""Ten runs killed (SIGKILL) at random moments: the store is never corrupt, and the same command ends the run."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gcdbench.plugins.manager import get_manager
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.evaluate import rescore
from gcdbench.runs.index import load_runs
from gcdbench.runs.record import DONE, INTERRUPTED

KILLS = 10
OPTIONS = ("--method", "ss-kmeans", "--dataset", "phantom", "--preset", "smoke", "--quiet")


def gcdbench(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "gcdbench.cli.main", *arguments]


def predictions(runs: Path) -> dict[str, str]:
    """The hash of each stored prediction file of the only run, which must be done."""
    [file] = runs.glob("*/*/*/run.json")
    record = json.loads(file.read_text())
    assert record["status"] == "done"
    return {name: entry["sha256"] for name, entry in record["predictions"].items()}


def wait_for_lock(runs: Path, process: subprocess.Popen[bytes], since: float) -> None:
    """Until the run's directory is being written: imports take most of a run's time and nothing can break there."""
    while process.poll() is None:
        if any(file.stat().st_mtime >= since for file in runs.glob("*/*/*/heartbeat")):
            return
        time.sleep(0.005)


@pytest.mark.slow
@pytest.mark.parametrize("again", [False, True], ids=["a first run", "a finished run with --force"])
def test_ten_kills_of_a_run(tmp_path: Path, again: bool) -> None:
    environment = {**os.environ, "GCDBENCH_CACHE": str(tmp_path / "cache")}

    def start(runs: Path, *more: str) -> subprocess.Popen[bytes]:
        command = gcdbench("run", *OPTIONS, "--runs", str(runs), *more)
        return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)

    whole = tmp_path / "whole"
    assert start(whole).wait() == 0  # prepares images and features as well
    expected = predictions(whole)
    since = time.time()
    process = start(whole, "--force")
    wait_for_lock(whole, process, since)
    began = time.monotonic()
    assert process.wait() == 0
    length = time.monotonic() - began
    chance = random.Random(7)
    interrupted = 0
    for number in range(KILLS):
        runs = whole if again else tmp_path / f"killed-{number}"
        since = time.time()
        process = start(runs, "--force")
        wait_for_lock(runs, process, since)
        time.sleep(chance.uniform(0.0, 1.0) * length)
        process.kill()
        process.wait()
        for entry in load_runs(runs):
            assert entry.status in (INTERRUPTED, DONE), f"kill {number}: {entry}"
            interrupted += entry.status == INTERRUPTED
            if entry.status == DONE:  # then its predictions are whole, and give the scores that are stored
                assert rescore(RunDirectory(entry.path), get_manager()) == ([], [])
        assert start(runs).wait() == 0
        assert predictions(runs) == expected, f"kill {number}"
    # Some kills must have fallen into the writing part, or this test shows nothing.
    assert interrupted >= 1


@pytest.mark.slow
def test_ctrl_c_is_an_interrupted_run(tmp_path: Path) -> None:
    """An orderly end: exit code 130, one word, and a run that says what it is."""
    environment = {**os.environ, "GCDBENCH_CACHE": str(tmp_path / "cache")}
    options = ("--method", "simgcd", "--dataset", "phantom", "--preset", "smoke", "--set", "epochs=500")
    runs = tmp_path / "runs"
    process = subprocess.Popen(
        gcdbench("run", *options, "--quiet", "--runs", str(runs)), env=environment, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 240
    while not any(runs.glob("*/*/*/events.jsonl")) and time.monotonic() < deadline:
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "Interrupted" in errors
    assert "Traceback" not in errors
    [record] = runs.glob("*/*/*/run.json")
    assert json.loads(record.read_text())["status"] == "interrupted"
