"""The tool under test, driven by its command line only, so that any version can be tried."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.faults.launch import Process
from benchmarks.faults.operations import Counter

PATIENCE = 180.0
"""Seconds after which a command hangs."""
LARGE = 2**20
"""Bytes from which a file is linked into a copy of a home."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a command gave back; ``code`` is None when it had to be stopped."""

    code: int | None
    out: str
    err: str

    @property
    def crashed(self) -> bool:
        """Whether it ended otherwise than well or with a sentence."""
        return self.code is None or self.code < 0 or "Traceback (most recent call last)" in self.err + self.out

    @property
    def refused(self) -> bool:
        """Whether it ended with a sentence and a non-zero exit code."""
        return not self.crashed and self.code != 0 and bool(self.err.strip() or self.out.strip())


class Tool:
    """One installation of gcdbench with a cache, a store and a home of its own; ``command`` None: this Python's."""

    def __init__(self, command: Sequence[str] | None, home: Path) -> None:
        self.command = command
        self.home = home
        self.runs = home / "runs"
        self.cache = home / "cache"
        home.mkdir(parents=True, exist_ok=True)

    def environment(self) -> dict[str, str]:
        """None of the user's settings, one thread, a checkpoint after every step."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("GCDBENCH_", "XDG_"))}
        return kept | {
            "HOME": str(self.home),
            "GCDBENCH_CACHE": str(self.cache),
            "GCDBENCH_RUNS": str(self.runs),
            "GCDBENCH_CHECKPOINT_SECONDS": "0",
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
        }

    def start(self, *arguments: str, counter: Counter | None = None) -> Process:
        """Begin a command in a process group of its own."""
        environment = self.environment() | (counter.environment if counter else {})
        return Process(self.command, arguments, self.home, environment)

    def call(self, *arguments: str, patience: float = PATIENCE) -> Answer:
        """Run a command to its end."""
        process = self.start(*arguments)
        code = process.wait(patience)
        if code is None:
            process.kill()
        out, err = process.output()
        return Answer(code=code, out=out, err=err)

    def copy(self, home: Path) -> Tool:
        """The same tool with copies of cache and store; its files may be damaged freely.

        Large files are linked, not copied: no version writes weights or archives in place, and whoever damages a file
        here replaces it.
        """
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(self.home, home, symlinks=True, copy_function=_copy_or_link)
        return Tool(self.command, home)

    def scores(self) -> dict[str, Any]:
        """The stored scores of every readable run: id -> set -> score -> value."""
        found = {}
        for file in sorted(self.runs.glob("*/*/*/scores.json")):
            with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
                sets = json.loads(file.read_text())["sets"]
                found[file.parent.name] = {name: entry["scores"] for name, entry in sets.items()}
        return found

    def failed(self) -> list[str]:
        """Runs that are stored as failed."""
        found = []
        for file in sorted(self.runs.glob("*/*/*/run.json")):
            with suppress(OSError, ValueError, KeyError, TypeError):
                if json.loads(file.read_text())["status"] == "failed":
                    found.append(file.parent.name)
        return found

    def results(self) -> dict[str, str]:
        """Finished runs: id -> digest of the prediction files as they are on the disk."""
        found = {}
        for file in sorted(self.runs.glob("*/*/*/run.json")):
            try:
                record = json.loads(file.read_text())
                if record["status"] != "done":
                    continue
                files = sorted(entry["file"] for entry in record["predictions"].values())
                content = b"".join((file.parent / name).read_bytes() for name in files)
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                continue
            found[file.parent.name] = hashlib.sha256(content).hexdigest()
        return found

    def numbers(self) -> dict[str, Any] | None:
        """What ``table --json`` prints as numbers, by run; None when it prints none."""
        answer = self.call("table", "--json", "--scores", "all,old,new,false_old,nmi")
        if answer.code != 0:
            return None
        try:
            entries = json.loads(answer.out)["entries"]
        except (ValueError, KeyError, TypeError):
            return None
        return {f"{'+'.join(entry['runs'])}/{entry['score']}": entry["mean"] for entry in entries}


def left_behind(tool: Tool, patience: float = 10.0) -> list[int]:
    """Processes that still work in a tool's store some seconds after its command was killed; they are ended here.

    A worker may have a process group of its own. It is known by the store in its environment, and must see by itself
    that its parent is gone; results are compared only when nobody writes any more.
    """
    deadline = time.monotonic() + patience
    while (found := _working_in(tool)) and time.monotonic() < deadline:
        time.sleep(0.1)
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    while _working_in(tool):
        time.sleep(0.05)
    return found


def _working_in(tool: Tool) -> list[int]:
    mark = f"GCDBENCH_RUNS={tool.runs}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # gone meanwhile, or somebody else's
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def files_below(*folders: Path) -> list[Path]:
    """Every file below these folders, in order."""
    return sorted(path for folder in folders for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def lost(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Runs that were finished before and are not, or have other predictions."""
    return [name for name, digest in before.items() if after.get(name) != digest]


def _copy_or_link(source: str, target: str) -> None:
    if os.stat(source).st_size >= LARGE:
        os.link(source, target)
    else:
        shutil.copy2(source, target)
