"""A real process, killed for real (SIGKILL), again and again, ends with the bits of one that was left in peace."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

SCRIPT = Path(__file__).with_name("killed_run.py")


def start(directory: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(directory), "0.05"],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )


def kill_after(directory: Path, steps: int) -> tuple[int, str | None]:
    """Run and kill after so many steps; where it began, and the hash if it ended by itself."""
    process, began, seen = start(directory), 0, 0
    assert process.stdout is not None
    for line in process.stdout:
        word, value = line.split()
        if word == "resumed":
            began = int(value)
        elif word == "done":
            process.wait()
            return began, value
        seen += word == "step"
        if seen == steps:
            process.kill()
    process.wait()
    return began, None


def test_killed_twice_and_resumed(tmp_path: Path) -> None:
    _, whole = kill_after(tmp_path / "whole", 10_000)
    assert whole is not None
    chance = random.Random(7)
    starts = []
    for _ in range(2):
        began, digest = kill_after(tmp_path / "killed", chance.randint(8, 15))
        starts.append(began)
        assert digest is None
    began, digest = kill_after(tmp_path / "killed", 10_000)
    starts.append(began)
    assert starts[0] == 0
    # It went on from where it was, not from the beginning.
    assert all(after > before for before, after in pairwise(starts))
    assert digest == whole
