"""The sweep that is sent through every engine: six runs of a trained method, seconds each."""

from __future__ import annotations

import sys
from pathlib import Path

from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.record import DONE

SUITE = """
title = "Six"
[presets.smoke]
seeds = [0, 1, 2, 3, 4, 5]
[presets.smoke.set]
image_size = 32
epochs = {epochs}
views = "bank:2"
[[columns]]
dataset = "phantom"
protocol = "half"
[[rows]]
method = "simgcd"
"""


def write_suite(folder: Path, *, epochs: int = 30) -> Path:
    """The suite's file."""
    path = folder / "six.toml"
    path.write_text(SUITE.format(epochs=epochs))
    return path


def gcdbench(*arguments: object) -> list[str]:
    """The command line in a process of its own."""
    return [sys.executable, "-m", "gcdbench.cli.main", *map(str, arguments)]


def finished(runs: Path) -> dict[int, dict[str, str]]:
    """The hashes of the predictions of every finished run, by seed."""
    records = [RunDirectory(path.parent).record() for path in runs.glob("*/*/*/run.json")]
    return {
        record.seed: {name: stored.sha256 for name, stored in record.predictions.items()}
        for record in records
        if record.status == DONE
    }


def in_training(runs: Path) -> list[Path]:
    """Runs that have written a checkpoint and are not done."""
    return [
        path.parent.parent
        for path in runs.glob("*/*/*/checkpoint/latest.pt")
        if RunDirectory(path.parent.parent).record().status != DONE
    ]
