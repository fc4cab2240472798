"""One writer for each run where locks of the file system do not reach other hosts: a lease that is kept by heartbeats.

The heartbeat file of a run names its writer and is touched every few seconds. Another host leaves the run alone while
the file is fresh, and takes it over when it is stale; a writer that finds somebody else's name in the file stops.
Times are compared by the clock of the file system alone, so that hosts need not agree on theirs.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gcdbench.core.files import write_text

LockMode = Literal["shared", "lease"]
MARK = ".locks"
"""File in a store that says how its runs are locked: ``shared`` or ``lease``; 'gcdbench doctor --cluster' writes it."""
SHARED_LOCKS = ("ext", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "ceph", "gpfs", "ocfs2", "gfs2", "bcachefs", "f2fs")
"""File systems whose locks hold for everybody who can see the files; a local one is seen by one host alone."""
SETTLE_SECONDS = 2.0
"""After a lease is taken over: time for another host, which did the same, to see whose name was written last."""


@dataclass(frozen=True, kw_only=True)
class Mount:
    """Where a path is: kind of file system and its options."""

    kind: str
    options: frozenset[str]


def mount_of(path: Path, table: str | None = None) -> Mount:
    """The mount that ``path`` is on, by Linux's table of mounts; unknown elsewhere."""
    if table is None:
        try:
            table = Path("/proc/self/mountinfo").read_text()
        except OSError:
            table = ""
    place = path.absolute()
    best, length = Mount(kind="unknown", options=frozenset()), -1
    for line in table.splitlines():
        left, _, right = line.partition(" - ")
        if not right:
            continue
        point = Path(left.split()[4].replace("\\040", " "))
        if place.is_relative_to(point) and len(point.parts) >= length:
            kind, _, options = [*right.split(), "", "", ""][:3]
            best = Mount(kind=kind, options=frozenset([*left.split()[5].split(","), *options.split(",")]))
            length = len(point.parts)
    return best


def locks_by_mount(mount: Mount) -> LockMode:
    """What a kind of file system promises; one that is not known promises nothing."""
    if mount.kind.startswith("nfs"):
        return "lease" if mount.options & {"nolock", "local_lock=all", "local_lock=flock"} else "shared"
    if mount.kind == "lustre":
        return "shared" if "flock" in mount.options else "lease"
    return "shared" if mount.kind.startswith(SHARED_LOCKS) else "lease"


def lock_mode(store: Path) -> LockMode:
    """How runs in ``store`` are locked: as its mark says, else as its file system promises."""
    with suppress(OSError):
        text = (store / MARK).read_text().strip()
        if text in ("shared", "lease"):
            return "lease" if text == "lease" else "shared"
    return locks_by_mount(mount_of(store))


def write_mode(store: Path, mode: LockMode) -> None:
    """Remember what a probe has found; every host that uses the store follows it."""
    write_text(store / MARK, mode + "\n")


def age_of(file: Path) -> float:
    """Seconds since ``file`` was touched, by the clock of its file system: a new file there tells what time it is.

    Where nothing can be written the clock of this host must do. A file that is not there is infinitely old.
    """
    try:
        touched = file.stat().st_mtime
    except FileNotFoundError:
        return float("inf")
    clock = file.with_name(f".clock-{secrets.token_hex(4)}")
    try:
        clock.touch()
        return clock.stat().st_mtime - touched
    except OSError:
        return time.time() - touched
    finally:
        with suppress(OSError):
            clock.unlink(missing_ok=True)


class Lease:
    """The right to write one run, held by one process at a time."""

    def __init__(self, file: Path, *, host: str, stale_seconds: float) -> None:
        self._file = file
        self._stale = stale_seconds
        self._host = host
        self._name = f"{host} {os.getpid()} {secrets.token_hex(8)}"

    def take(self, *, locked_here: bool) -> bool:
        """Try to get the lease; ``locked_here``: no other process of this host can be writing."""
        try:
            with self._file.open("x", encoding="utf-8") as file:  # atomic, over a network as well
                file.write(self._name)
            return True
        except FileExistsError:
            pass
        owner = self._owner()
        if owner.partition(" ")[0] == self._host:
            if not locked_here and self._lives(owner):
                return False
            write_text(self._file, self._name)
            return True
        if age_of(self._file) < self._stale:
            return False
        write_text(self._file, self._name)
        time.sleep(SETTLE_SECONDS)
        return self.held()

    def held(self) -> bool:
        """Whether the file still names this holder."""
        return self._owner() == self._name

    def beat(self, lost: Callable[[], None]) -> None:
        """Show that the holder is alive; ``lost`` is called where another one has taken over."""
        if self.held():
            with suppress(OSError):
                os.utime(self._file)
        elif self._owner():
            lost()

    def give_back(self) -> None:
        """The next writer need not wait."""
        if self.held():
            self._file.unlink(missing_ok=True)

    def _owner(self) -> str:
        try:
            return self._file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return ""

    @staticmethod
    def _lives(owner: str) -> bool:
        words = owner.split()
        return len(words) > 1 and words[1].isdecimal() and Path("/proc", words[1]).exists()
