"""Peak anonymous memory of a command and of each process it starts (Linux).

    python -m benchmarks.speed.memory gcdbench run --method simgcd --dataset kvasir

Anonymous memory is what a process cannot share and the system cannot drop; pages of a mapped view bank are not in it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

INTERVAL = 0.25
"""Seconds between two looks."""


def anonymous_bytes(pid: int) -> int:
    """RssAnon of a process, 0 when it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon:")), 0)


@dataclass(frozen=True, kw_only=True)
class Watched:
    """What a command did: exit code, standard output, the largest process's peak and that of all at one moment."""

    code: int
    output: str
    largest: int
    together: int


def watch_family(command: list[str]) -> Watched:
    """Run a command and watch it and all processes below it."""
    largest = together = 0
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output, subprocess.Popen(command, stdout=output) as started:
        root = psutil.Process(started.pid)
        while started.poll() is None:
            try:
                family = [root.pid, *(child.pid for child in root.children(recursive=True))]
            except psutil.NoSuchProcess:
                break
            sizes = [anonymous_bytes(pid) for pid in family]
            largest, together = max(largest, *sizes), max(together, sum(sizes))
            time.sleep(INTERVAL)
        code = started.wait()
        output.seek(0)
        return Watched(code=code, output=output.read(), largest=largest, together=together)


def watch(command: list[str]) -> tuple[int, dict[int, int]]:
    """The command's exit code, and the peak of each of its processes by process id."""
    peaks: dict[int, int] = {}
    with subprocess.Popen(command) as started:
        root = psutil.Process(started.pid)
        while started.poll() is None:
            try:
                family = [root.pid, *(child.pid for child in root.children(recursive=True))]
            except psutil.NoSuchProcess:
                break
            for pid in family:
                peaks[pid] = max(peaks.get(pid, 0), anonymous_bytes(pid))
            time.sleep(INTERVAL)
        return started.wait(), peaks


def main() -> None:
    """Run the command and print the largest peak."""
    if not sys.argv[1:]:
        raise SystemExit("Name the command to watch, for example: gcdbench run --method simgcd --dataset kvasir")
    code, peaks = watch(sys.argv[1:])
    largest = max(peaks.values(), default=0)
    print(f"peak RssAnon of one process: {largest / 2**30:.2f} GiB ({len(peaks)} processes)")
    raise SystemExit(code)


if __name__ == "__main__":
    main()
