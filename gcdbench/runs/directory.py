"""One run directory: ``<runs>/<dataset>/<method>/<run_id>/``.

run.json (identity, status, times, hashes of the files), config.toml, env.json, events.jsonl, predictions/*.npz,
embeddings/*.npz, scores.json, the model's files, checkpoint/ while running, .next/ while a finished run is done again,
lock, heartbeat.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from gcdbench.core.errors import StoreError
from gcdbench.core.locks import system_lock
from gcdbench.runs.leases import Lease, age_of, lock_mode
from gcdbench.runs.reader import RECORD, read_record
from gcdbench.runs.record import INTERRUPTED, RUNNING, STALE, Record

HEARTBEAT_SECONDS = 5.0
STALE_SECONDS = 120.0
LOCK_SECONDS = 1.0
"""A look at a run's state holds its lock for a moment; a writer waits that long before it gives up."""

NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.ENOENT, errno.ENOTDIR, errno.EISDIR)
"""Errors that are not about locks; where locks do not work, the lease alone decides."""


def now() -> str:
    """Time stamp in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def this_host() -> str:
    """A name for this machine that tells it apart from others without giving its name away."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:12]


def _interrupt(thread: int) -> None:
    """Raise KeyboardInterrupt in a thread, even where the process ignores Ctrl-C, as one in the background may."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))


class RunBusy(StoreError):
    """A run that another process is writing at the moment."""


class RunDirectory:
    """A run on the disk. Reading needs no lock; writing happens inside :meth:`writing`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.taken_over = False
        """Whether another host became the writer while this process was: from then on, nothing here is its to write."""

    @classmethod
    def at(cls, runs: Path, dataset: str, method: str, run_id: str) -> RunDirectory:
        """The directory of one run below ``runs``."""
        return cls(runs / dataset.replace("/", "_").replace(":", "_") / method.replace("/", "_") / run_id)

    @property
    def record_path(self) -> Path:
        """run.json."""
        return self.path / RECORD

    @property
    def next_dir(self) -> Path:
        """Where a finished run is done again, until the new result takes the old one's place."""
        return self.path / ".next"

    def exists(self) -> bool:
        """Whether a run was ever begun here."""
        return self.record_path.is_file()

    def record(self) -> Record:
        """What run.json says; an error where it is damaged."""
        return read_record(self.path)

    def status(self) -> str:
        """done, failed, running, interrupted (its process is gone), stale (silent, on another machine)."""
        return self.state_of(self.record())

    def state_of(self, record: Record) -> str:
        """The state of this run, given its record: a record cannot know that its process died."""
        if record.status != RUNNING:
            return record.status
        if record.host == this_host():
            return RUNNING if self._locked() else INTERRUPTED
        return RUNNING if self.heartbeat_age() < STALE_SECONDS else STALE

    def heartbeat_age(self) -> float:
        """Seconds since the run last showed a sign of life; clocks of hosts need not agree."""
        return age_of(self.path / "heartbeat")

    def _lock(self) -> FileLock:
        return system_lock(self.path / "lock")

    def _locked(self) -> bool:
        if not (self.path / "lock").exists():
            return False
        lock = self._lock()
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return True
        except (OSError, NotImplementedError):  # read-only for us, or without locks: its writer's heartbeat must do
            return self.heartbeat_age() < STALE_SECONDS
        lock.release()
        return False

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the directory as its only writer, with a heartbeat; where locks reach this host only, with a lease."""
        lease: Lease | None = None
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = self._lock()
            if lock_mode(self.path.absolute().parent.parent.parent) == "lease":
                lease = Lease(self.path / "heartbeat", host=this_host(), stale_seconds=STALE_SECONDS)
            try:
                lock.acquire(timeout=LOCK_SECONDS, poll_interval=0.05)
            except (OSError, NotImplementedError) as error:
                if lease is None or isinstance(error, Timeout) or getattr(error, "errno", 0) in NOT_WRITABLE:
                    raise
            if lease is not None and not lease.take(locked_here=lock.is_locked):
                lock.release()
                raise self._busy()
        except Timeout:
            raise self._busy() from None
        except OSError as error:
            raise StoreError(
                f"The run directory '{self.path}' cannot be written: {error.strerror or error}.",
                hint="Choose another directory with --runs, or make this one writable.",
            ) from error
        stop = threading.Event()
        self.taken_over = False

        writer = threading.get_ident()

        def lost() -> None:
            if not self.taken_over:
                self.taken_over = True
                _interrupt(writer)

        def beat() -> None:
            while not stop.is_set():
                with suppress(OSError):  # a full disk is reported by what has to be written
                    if lease is None:
                        (self.path / "heartbeat").touch()
                    else:
                        lease.beat(lost)
                stop.wait(HEARTBEAT_SECONDS)

        thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            if lease is not None:
                lease.give_back()
            lock.release()

    def _busy(self) -> RunBusy:
        return RunBusy(
            f"Another process is writing the run '{self.path.name}' at the moment.",
            hint="Wait for it, or see 'gcdbench status'.",
        )
