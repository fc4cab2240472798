"""What a newcomer waits for: the first run from an empty cache, a second method, the same line again, a folder.

Each is a command in a process of its own, imports and all, with compiled kernels and without. What the command said it
would take is shown next to what it took.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gcdbench.models.kernels.loader import SWITCH

_SAID = re.compile(r"about (\d+) (s|min)\b")


@dataclass(frozen=True, kw_only=True)
class Command:
    """What is timed, by the name the table has for it."""

    name: str
    method: str
    dataset: str = "phantom"
    more: tuple[str, ...] = ()

    def line(self, runs: Path) -> list[str]:
        """The command with all its arguments."""
        chosen = ["run", "--method", self.method, "--dataset", self.dataset, *self.more, "--runs", str(runs)]
        return [sys.executable, "-m", "gcdbench", *chosen]


def list_commands(folder: Path, *, quick: bool) -> list[Command]:
    """In this order, because each finds what those before it left in the cache."""
    small = ("--preset", "smoke") if quick else ()
    few = ("--set", f"epochs={1 if quick else 5}")
    return [
        Command(name="first run, empty cache", method="medxplore", more=small),
        Command(name="second method", method="simgcd", more=small),
        Command(name="the first line again", method="medxplore", more=small),
        Command(name="a folder of images", method="simgcd", dataset=f"folder:{folder}", more=(*small, *few)),
        Command(name="a second method on it", method="legogcd", dataset=f"folder:{folder}", more=(*small, *few)),
    ]


def parse_expected(output: str) -> float | None:
    """Seconds that the first line of a run's output promises; None where it promises none."""
    found = _SAID.search(output.partition("\n")[0])
    return None if found is None else float(found[1]) * (60 if found[2] == "min" else 1)


def measure(folder: Path, *, quick: bool) -> list[dict[str, Any]]:
    """Seconds of every command, with compiled kernels and without."""
    rows = []
    for kernels, switch in (("native", "1"), ("torch", "0")):
        with tempfile.TemporaryDirectory() as scratch:
            places = {"GCDBENCH_CACHE": f"{scratch}/cache", SWITCH: switch}
            for command in list_commands(folder, quick=quick):
                started = time.perf_counter()
                done = subprocess.run(
                    command.line(Path(scratch, "runs")),
                    env={**os.environ, **places},
                    check=True,
                    capture_output=True,
                    text=True,
                )
                seconds = time.perf_counter() - started
                expected = parse_expected(done.stdout)
                rows.append({"kernels": kernels, "what": command.name, "seconds": seconds, "expected": expected})
    return rows
