"""Ten runs killed (SIGKILL) at random moments: the store is never corrupt, and the same command ends the run."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

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


@pytest.mark.slow
@pytest.mark.parametrize("again", [False, True], ids=["a first run", "a finished run with --force"])
def test_ten_kills_of_a_run(tmp_path: Path, again: bool) -> None:
    environment = {**os.environ, "GCDBENCH_CACHE": str(tmp_path / "cache")}

    def call(*arguments: str) -> str:
        done = subprocess.run(gcdbench(*arguments), env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    whole = tmp_path / "whole"
    call("run", *OPTIONS, "--runs", str(whole))  # prepares images and features as well
    began = time.monotonic()
    call("run", *OPTIONS, "--runs", str(whole), "--force")
    length = time.monotonic() - began
    expected = predictions(whole)
    chance = random.Random(7)
    caught = 0
    for number in range(KILLS):
        runs = str(whole) if again else str(tmp_path / f"killed-{number}")
        process = subprocess.Popen(gcdbench("run", *OPTIONS, "--runs", runs, "--force"), env=environment)
        # Imports take most of the time; the run directory is written in the last part of it.
        time.sleep(chance.uniform(0.5, 1.1) * length)
        process.kill()
        process.wait()
        for entry in json.loads(call("status", "--runs", runs, "--json")):
            assert entry["status"] in ("interrupted", "done"), f"kill {number}: {entry}"
            caught += entry["status"] == "interrupted"
            if entry["status"] == "done":
                call("rescore", "--runs", runs)  # checks the predictions' hashes
        call("run", *OPTIONS, "--runs", runs)
        assert predictions(Path(runs)) == expected, f"kill {number}"
        left = [p for p in Path(runs).rglob("*") if p.name.endswith(".part")]
        assert len(left) <= 1, left
    # Some kills must have fallen into the writing part, or this test shows nothing.
    assert caught >= 1


@pytest.mark.slow
def test_ctrl_c_is_an_interrupted_run(tmp_path: Path) -> None:
    """An orderly end: exit code 130, one word, and a run that says what it is."""
    import signal

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
