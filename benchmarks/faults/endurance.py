"""Memory, open files and threads of one process over many runs, and over a run of many epochs (Linux).

    python -m benchmarks.faults.endurance [--runs 1000] [--epochs 200] [--output FILE]

Runs small experiments one after another in this process, three of clustering for one of training, then one training
of many epochs. What is printed is the growth from the end of a warm-up (a tenth of the way) to the end. Without
``--output`` the figures go into docs/reliability.md, between its markers.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import gcdbench
from benchmarks.speed.memory import anonymous_bytes
from gcdbench.api import EpochEnd, Event

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"
FIGURES = Path(__file__).with_name("endurance.json")
BEGIN, END = "<!-- endurance: begin -->", "<!-- endurance: end -->"
SMALL = {"n_per_class": 12, "size": 48}


@dataclass(frozen=True, kw_only=True)
class Sample:
    """step: run or epoch; memory: anonymous bytes; files: open descriptors; threads: of the process."""

    step: int
    memory: int
    files: int
    threads: int


def sample(step: int) -> Sample:
    """This process as it is now."""
    gc.collect()
    return Sample(
        step=step,
        memory=anonymous_bytes(os.getpid()),
        files=len(os.listdir("/proc/self/fd")),
        threads=len(os.listdir("/proc/self/task")),
    )


def many_runs(count: int) -> list[Sample]:
    """``count`` runs; each has a seed of its own, so that none is reused, and is deleted when it is done."""
    found = []
    with tempfile.TemporaryDirectory(prefix="gcdbench-endurance-") as folder:
        for number in range(count):
            method = "simgcd" if number % 4 == 3 else "ss-kmeans"
            done = gcdbench.run(
                method, "phantom", number, preset="smoke", dataset_options=SMALL, runs=folder,
                threads=1, image_size=32,
            )  # fmt: skip
            if done.record.status != "done" or done.reused:
                raise SystemExit(f"run {number} is {done.record.status}")
            shutil.rmtree(done.path)
            if number % 10 == 9:
                found.append(sample(number + 1))
    return found


def many_epochs(count: int) -> list[Sample]:
    """One training of ``count`` epochs, looked at after each."""
    found: list[Sample] = []

    def look(event: Event) -> None:
        if isinstance(event, EpochEnd):
            found.append(sample(len(found) + 1))

    with tempfile.TemporaryDirectory(prefix="gcdbench-endurance-") as folder:
        gcdbench.run(
            "simgcd", "phantom", preset="smoke", dataset_options=SMALL, runs=folder, threads=1,
            image_size=32, epochs=count, listener=look,
        )  # fmt: skip
    if len(found) < count:
        raise SystemExit(f"{len(found)} of {count} epochs were seen")
    return found


@dataclass(frozen=True, kw_only=True)
class Growth:
    """From the end of the warm-up to the end; memory in MiB, per_thousand: of the straight line through the samples."""

    what: str
    steps: int
    begin: float
    end: float
    per_thousand: float
    files: tuple[int, int]
    threads: tuple[int, int]
    seconds: float


def growth(what: str, samples: Sequence[Sample], seconds: float) -> Growth:
    """What has grown since the warm-up."""
    import numpy as np

    kept = [one for one in samples if one.step > samples[-1].step // 10]
    memory = np.array([one.memory / 2**20 for one in kept])
    slope = float(np.polyfit([one.step for one in kept], memory, 1)[0])
    tenth = max(1, len(kept) // 9)
    return Growth(
        what=what,
        steps=samples[-1].step,
        begin=float(np.median(memory[:tenth])),
        end=float(np.median(memory[-tenth:])),
        per_thousand=1000 * slope,
        files=(kept[0].files, kept[-1].files),
        threads=(kept[0].threads, kept[-1].threads),
        seconds=seconds,
    )


def markdown(found: Sequence[Growth]) -> str:
    """A row for each."""
    lines = ["| in one process | memory | growth in 1,000 | open files | threads |", "|---|---:|---:|---:|---:|"]
    lines += [
        f"| {one.steps:,} {one.what} | {one.begin:.1f} to {one.end:.1f} MiB | {one.per_thousand:+.1f} MiB "
        f"| {one.files[0]} to {one.files[1]} | {one.threads[0]} to {one.threads[1]} |"
        for one in found
    ]
    return "\n".join(lines) + "\n"


def measure(what: str, work: Callable[[int], list[Sample]], count: int) -> Growth:
    """Do the work and say what has grown."""
    began = time.monotonic()
    return growth(what, work(count), time.monotonic() - began)


def main() -> int:
    """Print the growth and keep it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults.endurance", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--output", type=Path, help="file for the figures; the page is then left alone")
    options = parser.parse_args()
    found = [measure("runs", many_runs, options.runs), measure("epochs of one run", many_epochs, options.epochs)]
    text = markdown(found)
    print(text, f"threads of Python: {threading.active_count()}", sep="")
    (options.output or FIGURES).write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n")
    if options.output is None:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{text}{END}{rest.partition(END)[2]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
