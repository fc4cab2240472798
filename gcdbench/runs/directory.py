"""One run directory: ``<runs>/<dataset>/<method>/<run_id>/``.

run.json (identity, status, times), config.toml, env.json, events.jsonl, predictions/*.npz, embeddings/*.npz,
scores.json, model.safetensors, checkpoint/ while running, previous/ while a finished run is done again, lock,
heartbeat.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from gcdbench.core.errors import StoreError
from gcdbench.core.files import read_json, write_json, write_text
from gcdbench.core.identity import canonical_json

SCHEMA = 1
HEARTBEAT_SECONDS = 5.0
STALE_SECONDS = 120.0
LOCK_SECONDS = 1.0
"""A look at a run's state holds its lock for a moment; a writer waits that long before it gives up."""
DONE, FAILED, RUNNING, INTERRUPTED, STALE, UNREADABLE = (
    "done",
    "failed",
    "running",
    "interrupted",
    "stale",
    "unreadable",
)


def now() -> str:
    """Time stamp in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def this_host() -> str:
    """A name for this machine that tells it apart from others and tells nobody its name."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:12]


class RunDirectory:
    """A run on the disk. Reading needs no lock; writing happens inside :meth:`writing`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def at(cls, runs: Path, dataset: str, method: str, run_id: str) -> RunDirectory:
        """The directory of one run below ``runs``."""
        return cls(runs / dataset.replace("/", "_").replace(":", "_") / method.replace("/", "_") / run_id)

    @property
    def record_path(self) -> Path:
        """run.json."""
        return self.path / "run.json"

    @property
    def predictions_dir(self) -> Path:
        """Where predictions lie: the primary artefact."""
        return self.path / "predictions"

    @property
    def checkpoint_dir(self) -> Path:
        """Where an unfinished training keeps its state."""
        return self.path / "checkpoint"

    @property
    def scores_path(self) -> Path:
        """scores.json."""
        return self.path / "scores.json"

    def exists(self) -> bool:
        """Whether a run was ever begun here."""
        return self.record_path.is_file()

    def record(self) -> dict[str, Any]:
        """The content of run.json, checked for its schema."""
        value = read_json(self.record_path)
        if not isinstance(value, dict) or value.get("schema") != SCHEMA:
            found = value.get("schema") if isinstance(value, dict) else None
            raise StoreError(
                f"'{self.record_path}' has schema {found}, this gcdbench reads {SCHEMA}.",
                hint="Use the version of gcdbench that wrote it.",
            )
        return value

    def scores(self) -> dict[str, Any]:
        """The content of scores.json."""
        value = read_json(self.scores_path)
        if not isinstance(value, dict):
            raise StoreError(f"'{self.scores_path}' is not a table of scores.")
        return value

    def status(self) -> str:
        """done, failed, running, interrupted (its process is gone), stale (silent, on another machine)."""
        record = self.record()
        status = str(record.get("status"))
        if status != RUNNING:
            return status
        if record.get("host") == this_host():
            return RUNNING if self._locked() else INTERRUPTED
        return RUNNING if self.heartbeat_age() < STALE_SECONDS else STALE

    def heartbeat_age(self) -> float:
        """Seconds since the run last said that it lives."""
        try:
            return time.time() - (self.path / "heartbeat").stat().st_mtime
        except FileNotFoundError:
            return float("inf")

    def _lock(self) -> FileLock:
        return FileLock(self.path / "lock")

    def _locked(self) -> bool:
        if not (self.path / "lock").exists():
            return False
        lock = self._lock()
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return True
        except OSError:  # a store that is read-only for us: its writer's heartbeat must do
            return self.heartbeat_age() < STALE_SECONDS
        lock.release()
        return False

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the directory as its only writer, with a heartbeat."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = self._lock()
            lock.acquire(timeout=LOCK_SECONDS, poll_interval=0.05)
        except Timeout:
            raise StoreError(
                f"Another process is writing the run '{self.path.name}' at this moment.",
                hint="Wait for it, or look at 'gcdbench status'.",
            ) from None
        except OSError as error:
            raise StoreError(
                f"The run directory '{self.path}' cannot be written: {error.strerror or error}.",
                hint="Choose another directory with --runs, or make this one writable.",
            ) from error
        stop = threading.Event()

        def beat() -> None:
            while not stop.is_set():
                with suppress(OSError):  # a full disk is reported by what has to be written
                    (self.path / "heartbeat").touch()
                stop.wait(HEARTBEAT_SECONDS)

        thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            lock.release()

    @property
    def previous_dir(self) -> Path:
        """Where a finished run waits while it is done again."""
        return self.path / "previous"

    def _set_aside(self) -> None:
        """Keep a finished run until the new one is finished too; its record is moved last and makes the copy valid."""
        if not self.exists() or (record := self.record()).get("status") != DONE:
            return
        shutil.rmtree(self.previous_dir, ignore_errors=True)
        self.previous_dir.mkdir()
        write_json(self.record_path, {**record, "status": INTERRUPTED})
        kept = {"lock", "heartbeat", self.record_path.name, self.previous_dir.name, self.checkpoint_dir.name}
        for entry in list(self.path.iterdir()):
            if entry.name not in kept:
                entry.rename(self.previous_dir / entry.name)
        write_json(self.previous_dir / self.record_path.name, record)

    def _bring_back(self) -> bool:
        """Undo :meth:`_set_aside` where the new run came to nothing; again the record comes last."""
        record = self.previous_dir / self.record_path.name
        if not record.is_file():
            return False
        for entry in list(self.previous_dir.iterdir()):
            target = self.path / entry.name
            if entry != record:
                shutil.rmtree(target) if target.is_dir() else target.unlink(missing_ok=True)
                entry.rename(target)
        record.replace(self.record_path)
        self.previous_dir.rmdir()
        return True

    def begin(self, record: Mapping[str, Any], *, config_toml: str, environment: Mapping[str, Any]) -> None:
        """Start (or start again): a finished run is set aside, what an unfinished one left goes but its checkpoint.

        In this order, so that a process killed in between leaves no run that is done but has no predictions.
        """
        self._bring_back()  # a killed process could not
        self._set_aside()
        write_text(self.path / "config.toml", config_toml)
        write_json(self.path / "env.json", environment)
        write_json(
            self.record_path,
            {
                **record,
                "schema": SCHEMA,
                "status": RUNNING,
                "started": now(),
                "host": this_host(),
                "pid": os.getpid(),
            },
        )
        self.scores_path.unlink(missing_ok=True)
        for stale in (self.predictions_dir, self.path / "embeddings"):
            shutil.rmtree(stale, ignore_errors=True)

    def finish(self, **changes: Any) -> None:
        """Mark the run as done; its checkpoint is no longer needed."""
        self._close(DONE, changes)
        for spent in (self.checkpoint_dir, self.previous_dir):
            shutil.rmtree(spent, ignore_errors=True)

    def fail(self, error: str, trace: str) -> None:
        """Mark the run as failed, with the reason; where it was a second try, the first one's result counts again."""
        if self._bring_back():
            self.append_event({"type": "rerun-failed", "error": error, "traceback": trace})
        else:
            self._close(FAILED, {"error": error, "traceback": trace})

    def interrupt(self) -> None:
        """Mark the run as interrupted by the user; a second try is given up."""
        if not self._bring_back():
            self._close(INTERRUPTED, {})

    def _close(self, status: str, changes: Mapping[str, Any]) -> None:
        write_json(self.record_path, {**self.record(), **changes, "status": status, "finished": now()})

    def append_event(self, event: Mapping[str, Any]) -> None:
        """One line of events.jsonl; a torn last line (after a kill) is skipped by readers."""
        with (self.path / "events.jsonl").open("a") as file:
            file.write(canonical_json({"time": round(time.time(), 3), **event}) + "\n")

    def events(self) -> list[dict[str, Any]]:
        """All whole lines of events.jsonl."""
        import json

        path = self.path / "events.jsonl"
        if not path.is_file():
            return []
        found = []
        for line in path.read_text().splitlines():
            try:
                found.append(json.loads(line))
            except json.JSONDecodeError:  # the line that was being written when the process was killed
                continue
        return found
