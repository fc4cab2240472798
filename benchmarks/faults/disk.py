"""Disks that are full, out of inodes or read-only: a sentence, and with room the same command ends the work."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.faults.tool import Answer, Tool
from benchmarks.faults.trial import CRASH, HANG, LOST, OK, SILENT, Case, Outcome
from benchmarks.faults.world import KMEANS, SIMGCD

LIMITS = {
    "full after {n} kB": ("size={n}k", (64, 256, 1500, 6000, 9000, 12000, 30000)),
    "{n} files and no more": ("size=200m,nr_inodes={n}", (2, 8, 16, 24, 32)),
}


def disk_cases(prepared: Tool, finished: Tool, archive: Path, scratch: Path) -> Iterator[Case]:
    """Store or cache on a small file system of its own; needs the right to mount one."""
    place = scratch / "disk"
    place.mkdir(parents=True, exist_ok=True)
    if os.geteuid() != 0 or _mount(place, "size=1m"):
        print("disk: no file system can be mounted here, nothing tried")
        return
    _unmount(place)
    commands = {
        "run (training)": (prepared, SIMGCD),
        "run (clustering)": (prepared, KMEANS),
        "import": (prepared, ("import", str(archive))),
    }
    for group, (start, arguments) in commands.items():
        reference = start.copy(scratch / "reference")
        reference.call(*arguments)
        expected = reference.results()
        limits = [
            (title.format(n=value), options.format(n=value), False)
            for title, (options, values) in LIMITS.items()
            for value in values
        ]
        for title, options, frozen in (*limits, ("read-only", "size=200m", True)):
            for part in ("runs", "cache"):
                run = partial(_no_room, start, part, options, arguments, expected, frozen)
                yield Case(section="no room", group=group, name=f"{part}: {title}", run=run)
    for title, options in (
        ("full", "size={room}k"),
        ("no inode left", "size=200m,nr_inodes={files}"),
        ("read-only", ""),
    ):
        for verb in (("rescore",), ("run", *SIMGCD[1:], "--force"), ("export", "runs/out.zip", "--weights")):
            group = "run --force" if verb[0] == "run" else verb[0]
            run = partial(_full_store, finished, options, verb)
            yield Case(section="no room", group=group, name=f"runs: {title}", run=run)


def _no_room(
    start: Tool,
    part: str,
    options: str,
    arguments: tuple[str, ...],
    expected: dict[str, str],
    frozen: bool,
    folder: Path,
) -> Outcome:
    tool = start.copy(folder / "home")
    place = tool.home / part
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    _mount(place, options)
    try:
        if frozen:
            _remount(place, "ro")
        first = tool.call(*arguments)
        _remount(place, "rw,size=400m,nr_inodes=100000")
        second = tool.call(*arguments)
        results = tool.results()
    finally:
        _unmount(place)
    return _verdict(first, second, results, expected)


def _full_store(finished: Tool, options: str, arguments: tuple[str, ...], folder: Path) -> Outcome:
    """A store with finished runs on a file system without room for anything more."""
    tool = finished.copy(folder / "home")
    kept = tool.runs.rename(tool.home / "kept")
    size = sum(-(-file.stat().st_size // 4096) * 4 for file in kept.rglob("*")) + 64
    tool.runs.mkdir()
    _mount(tool.runs, "size=200m")
    try:
        shutil.copytree(kept, tool.runs, dirs_exist_ok=True)
        files = 1 + sum(1 for _ in tool.runs.rglob("*"))
        shutil.rmtree(kept)
        before, scores = tool.results(), tool.scores()
        _remount(tool.runs, options.format(room=size, files=files + 1) or "ro")
        first = tool.call(*arguments)
        shown = tool.numbers()
        _remount(tool.runs, "rw,size=400m,nr_inodes=100000")
        second = tool.call(*arguments)
        results, after = tool.results(), tool.scores()
    finally:
        _unmount(tool.runs)
    if shown is None:
        return Outcome(verdict=LOST, detail="the table is not shown while there is no room")
    if after != scores:
        return Outcome(verdict=SILENT, detail="other scores")
    return _verdict(first, second, results, before)


def _verdict(first: Answer, second: Answer, results: dict[str, str], expected: dict[str, str]) -> Outcome:
    said = f"first: exit code {first.code}. {first.err.strip()[-200:]}"
    if first.code is None or second.code is None:
        return Outcome(verdict=HANG, detail=said)
    if first.crashed or second.crashed:
        return Outcome(verdict=CRASH, detail=f"{said} second: {second.err.strip()[-200:]}")
    if second.code != 0:
        return Outcome(verdict=LOST, detail=f"{said} with room: {second.err.strip()[-200:]}")
    return Outcome(verdict=OK if results == expected else SILENT, detail=said)


def _remount(place: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(place)], check=True)


def _mount(place: Path, options: str) -> int:
    return subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], capture_output=True).returncode


def _unmount(place: Path) -> None:
    subprocess.run(["umount", str(place)], capture_output=True)
