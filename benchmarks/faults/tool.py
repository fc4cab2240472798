"""The tool under test, driven by its command line only, so that any version can be tried."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATIENCE = 180.0
"""Seconds after which a command hangs."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a command gave back; ``code`` is None when it had to be stopped."""

    code: int | None
    out: str
    err: str
    seconds: float

    @property
    def crashed(self) -> bool:
        """Whether it ended otherwise than well or with a sentence."""
        return self.code is None or self.code < 0 or "Traceback (most recent call last)" in self.err + self.out

    @property
    def refused(self) -> bool:
        """Whether it ended with a sentence and a non-zero exit code."""
        return not self.crashed and self.code != 0 and bool(self.err.strip() or self.out.strip())


class Tool:
    """One installation of gcdbench with a cache, a store and a home of its own."""

    def __init__(self, command: Sequence[str], home: Path) -> None:
        self.command = tuple(command)
        self.home = home
        self.runs = home / "runs"
        self.cache = home / "cache"
        home.mkdir(parents=True, exist_ok=True)

    def environment(self) -> dict[str, str]:
        """Nothing of the user's, one thread, a checkpoint after every step."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("GCDBENCH_", "XDG_"))}
        return kept | {
            "HOME": str(self.home),
            "GCDBENCH_CACHE": str(self.cache),
            "GCDBENCH_RUNS": str(self.runs),
            "GCDBENCH_CHECKPOINT_SECONDS": "0",
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Begin a command in a process group of its own."""
        return subprocess.Popen(
            [*self.command, *arguments],
            cwd=self.home,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )

    def call(self, *arguments: str, patience: float = PATIENCE) -> Answer:
        """Run a command to its end."""
        began = time.monotonic()
        process = self.start(*arguments)
        try:
            out, err = process.communicate(timeout=patience)
            code: int | None = process.returncode
        except subprocess.TimeoutExpired:
            kill(process)
            out, err = process.communicate()
            code = None
        return Answer(code=code, out=out, err=err, seconds=time.monotonic() - began)

    def copy(self, home: Path) -> Tool:
        """The same tool with copies of cache and store; its files may be damaged freely."""
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(self.home, home, symlinks=True)
        return Tool(self.command, home)

    def results(self) -> dict[str, str]:
        """Finished runs: id -> digest of the prediction files as they lie on the disk."""
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


def kill(process: subprocess.Popen[str]) -> None:
    """End a command and everything it started, at once."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        process.kill()


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
