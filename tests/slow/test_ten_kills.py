"""Ten runs of the command line, each killed (SIGKILL) at a random moment and started again: ten times the same bits."""

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


def command(runs: Path) -> list[str]:
    options = ["--method", "simgcd", "--dataset", "phantom", "--preset", "smoke", "--set", "epochs=6", "--quiet"]
    return [sys.executable, "-m", "gcdbench.cli.main", "run", *options, "--runs", str(runs)]


def hashes(runs: Path) -> dict[str, str]:
    """The hash of each stored prediction file of the only run."""
    (record,) = runs.glob("*/*/*/run.json")
    content = json.loads(record.read_text())
    assert content["status"] == "done"
    return {name: entry["sha256"] for name, entry in content["predictions"].items()}


@pytest.mark.slow
def test_ten_kills(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "GCDBENCH_CACHE": str(tmp_path / "cache"),
        "GCDBENCH_CHECKPOINT_SECONDS": "0.2",
    }
    subprocess.run(command(tmp_path / "warm"), env=environment, check=True)  # makes the view bank
    began = time.monotonic()
    subprocess.run(command(tmp_path / "whole"), env=environment, check=True)
    length = time.monotonic() - began
    expected = hashes(tmp_path / "whole")
    assert expected == hashes(tmp_path / "warm")
    chance = random.Random(2024)
    resumed = 0
    for number in range(KILLS):
        runs = tmp_path / f"killed-{number}"
        process = subprocess.Popen(command(runs), env=environment)
        # The first share of a run is imports; most kills shall hit the training.
        time.sleep(chance.uniform(0.3, 1.0) * length)
        process.kill()
        process.wait()
        subprocess.run(command(runs), env=environment, check=True)
        assert hashes(runs) == expected, f"kill {number}"
        events = next(runs.glob("*/*/*/events.jsonl")).read_text()
        resumed += '"resumed"' in events
    # At least some of the kills fell into the training, after the first checkpoint.
    assert resumed >= KILLS // 3
