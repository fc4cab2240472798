"""Disks that are full, out of inodes or read-only: a sentence, and with room the same command ends the work."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from benchmarks.faults.tool import Answer, Tool
from benchmarks.faults.trial import CRASH, HANG, LOST, OK, SILENT, Trial
from benchmarks.faults.world import KMEANS, SIMGCD

LIMITS = {
    "full after {n} kB": ("size={n}k", (64, 256, 700, 1500, 3000, 6000, 9000, 12000)),
    "{n} files and no more": ("size=200m,nr_inodes={n}", (2, 8, 16, 24, 32, 48)),
}


def disk_trials(prepared: Tool, scratch: Path) -> Iterator[Trial]:
    """Store and cache on a small file system of their own; needs the right to mount one."""
    place = scratch / "disk"
    place.mkdir(parents=True, exist_ok=True)
    if os.geteuid() != 0 or _mount(place, "size=1m"):
        print("disk: no file system can be mounted here, nothing tried")
        return
    _unmount(place)
    for arguments, what in ((SIMGCD, "run (training)"), (KMEANS, "run (clustering)")):
        reference = prepared.copy(scratch / "reference")
        reference.call(*arguments)
        expected = reference.results()
        for title, (options, values) in LIMITS.items():
            for value in values:
                for part in ("runs", "cache"):
                    case = f"{part}: {title.format(n=value)}"
                    yield _try(prepared, scratch, part, options.format(n=value), arguments, expected, what, case)
        for part in ("runs", "cache"):
            yield _try(
                prepared, scratch, part, "size=200m", arguments, expected, what, f"{part}: read-only", frozen=True
            )


def _try(
    prepared: Tool,
    scratch: Path,
    part: str,
    options: str,
    arguments: tuple[str, ...],
    expected: dict[str, str],
    what: str,
    case: str,
    *,
    frozen: bool = False,
) -> Trial:
    tool = prepared.copy(scratch / "small")
    place = tool.home / part
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    _mount(place, options)
    try:
        if frozen:
            subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        first = tool.call(*arguments)
        subprocess.run(["mount", "-o", "remount,rw,size=400m,nr_inodes=100000", str(place)], check=True)
        second = tool.call(*arguments)
        results = tool.results()
    finally:
        _unmount(place)
    return Trial(section="no room", group=what, case=case, verdict=_verdict(first, second, results, expected))


def _verdict(first: Answer, second: Answer, results: dict[str, str], expected: dict[str, str]) -> str:
    if first.code is None or second.code is None:
        return HANG
    if first.crashed or second.crashed:
        return CRASH
    if second.code != 0:
        return LOST
    return OK if results == expected else SILENT


def _mount(place: Path, options: str) -> int:
    return subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], capture_output=True).returncode


def _unmount(place: Path) -> None:
    subprocess.run(["umount", str(place)], capture_output=True)
