"""Memory, open files and threads of one process over many runs, and over a run of many epochs (Linux).

    python -m benchmarks.faults.endurance [--runs 1000] [--epochs 200] [--output FILE]

Runs small experiments one after another in this process, three of clustering for one of training, then one training
of many epochs. The first tenth is a warm-up; the rest is judged:

- memory is flat when the straight line through the memory *in use* rises by less than ``FLAT`` of it over the way.
  In use is what remains when the C library has given back all that is free. It is looked at in a fork, so that the
  process itself continues as it would; what that *holds* from the system is given with it.
- open files and threads are flat when the second half never has more of them than the first.

The exit code is 1 when something is not. Without ``--output`` the figures go into docs/reliability.md, between its
markers.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import gcdbench
from benchmarks.speed.memory import anonymous_bytes
from gcdbench.api import EpochEnd, Event

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"
FIGURES = Path(__file__).with_name("endurance.json")
BEGIN, END = "<!-- endurance: begin -->", "<!-- endurance: end -->"
SMALL = {"n_per_class": 12, "size": 48}
MIB = 2**20
FLAT = 0.01
"""Share of the memory in use, below which its growth over the whole way counts as none."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """step: run or epoch; held, used: anonymous bytes, with and without what is free; files: open; threads: running."""

    step: int
    held: int
    used: int
    files: int
    threads: int


def sample(step: int) -> Sample:
    """This process as it is now."""
    gc.collect()
    return Sample(
        step=step,
        held=anonymous_bytes(os.getpid()),
        used=_used_bytes(),
        files=len(os.listdir("/proc/self/fd")),
        threads=len(os.listdir("/proc/self/task")),
    )


def _used_bytes() -> int:
    """Anonymous bytes of a fork that has given back to the system what its C library holds free."""
    trim = ctypes.CDLL(None).malloc_trim
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            trim(0)
            os.write(writing, str(anonymous_bytes(os.getpid())).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        told = answer.read()
    os.waitpid(child, 0)
    return int(told)


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
    """After the warm-up. Memory in MiB; ``rise``: of the line through the memory in use, from its begin to its end;
    ``held``: least and most; ``files``, ``threads``: the most in the first half and in the second."""

    what: str
    steps: int
    used: float
    rise: float
    held: tuple[float, float]
    files: tuple[int, int]
    threads: tuple[int, int]
    seconds: float

    @property
    def flat(self) -> bool:
        """Whether nothing has grown."""
        return self.rise < FLAT * self.used and self.files[1] <= self.files[0] and self.threads[1] <= self.threads[0]


def growth(what: str, samples: Sequence[Sample], seconds: float) -> Growth:
    """What has grown since the warm-up."""
    kept = [one for one in samples if one.step > samples[-1].step // 10]
    steps, used, held = (np.array([getattr(one, name) for one in kept]) for name in ("step", "used", "held"))
    slope = float(np.polyfit(steps, used / MIB, 1)[0])
    halves = kept[: len(kept) // 2], kept[len(kept) // 2 :]
    return Growth(
        what=what,
        steps=samples[-1].step,
        used=float(np.median(used)) / MIB,
        rise=slope * float(steps[-1] - steps[0]),
        held=(float(held.min()) / MIB, float(held.max()) / MIB),
        files=(max(one.files for one in halves[0]), max(one.files for one in halves[1])),
        threads=(max(one.threads for one in halves[0]), max(one.threads for one in halves[1])),
        seconds=seconds,
    )


def markdown(found: Sequence[Growth]) -> str:
    """A row for each."""
    lines = [
        "| in one process | memory in use | its growth | held from the system | open files | threads | flat | time |",
        "|---|---:|---:|---:|---:|---:|---|---:|",
    ]
    lines += [
        f"| {one.steps:,} {one.what} | {one.used:.1f} MiB | {one.rise:+.2f} MiB "
        f"| {one.held[0]:.0f} to {one.held[1]:.0f} MiB | {one.files[0]}, then {one.files[1]} "
        f"| {one.threads[0]}, then {one.threads[1]} | {'yes' if one.flat else '**no**'} | {one.seconds / 60:.0f} min |"
        for one in found
    ]
    return "\n".join(lines) + "\n"


def measure(what: str, work: Callable[[int], list[Sample]], count: int) -> Growth:
    """Do the work and say what has grown."""
    began = time.monotonic()
    return growth(what, work(count), time.monotonic() - began)


def main() -> int:
    """Print the growth and keep it; the exit code is 1 when something grew."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults.endurance", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--output", type=Path, help="file for the figures; the page is then left alone")
    options = parser.parse_args()
    found = [measure("runs", many_runs, options.runs), measure("epochs of one run", many_epochs, options.epochs)]
    text = markdown(found)
    print(text, end="")
    figures = [asdict(one) | {"flat": one.flat} for one in found]
    (options.output or FIGURES).write_text(json.dumps(figures, indent=1) + "\n")
    if options.output is None:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{text}{END}{rest.partition(END)[2]}")
    return int(not all(one.flat for one in found))


if __name__ == "__main__":
    sys.exit(main())
