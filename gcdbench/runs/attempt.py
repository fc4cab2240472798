"""One attempt at a run: the files it writes, and the moment in which they become its result.

A run that has no result yet is written in its own directory. A run that has one and is done again is written in
``.next/`` inside of it; nothing of the first result is touched until the second is complete. Then one replaced file,
run.json, makes the new files the result (``folder`` points at them), and only after that they are moved to their usual
place. Whenever a process is killed, run.json names one complete result: the old one or the new one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from gcdbench.core.errors import StoreError
from gcdbench.core.files import sync, write_text
from gcdbench.core.identity import canonical_json
from gcdbench.runs.directory import RunDirectory, now, this_host
from gcdbench.runs.events import Event, RepetitionFailed
from gcdbench.runs.reader import CONFIG, COST, ENVIRONMENT, EVENTS, IMPORTED, NAMES, RECORD, SCORES, read_record
from gcdbench.runs.record import DONE, FAILED, INTERRUPTED, RUNNING, Environment, Record, Scores, StoredFile
from gcdbench.runs.strict_json import write_sealed

PREDICTIONS, EMBEDDINGS, ATTENTION, CHECKPOINT, PREVIOUS = (
    "predictions",
    "embeddings",
    "attention",
    "checkpoint",
    "previous",
)
PASSING = ("lock", "heartbeat", CHECKPOINT, PREVIOUS)
"""Names in a run directory that are not part of a result."""


def attempt_home(directory: RunDirectory) -> Path:
    """Where an attempt at this run is written: next to a result, or in the run's own directory where there is none."""
    if not directory.exists():
        return directory.path
    try:
        return directory.next_dir if directory.record().status == DONE else directory.path
    except StoreError:  # damaged, and perhaps its predictions are not
        return directory.next_dir


class Attempt:
    """A run that is being made; use it inside :meth:`RunDirectory.writing`."""

    def __init__(self, directory: RunDirectory, record: Record) -> None:
        self.directory = directory
        self.home = attempt_home(directory)
        self.record = replace(record, path=self.home)

    @property
    def repeats(self) -> bool:
        """Whether there is a result that this attempt may replace."""
        return self.home != self.directory.path

    @property
    def checkpoint_dir(self) -> Path:
        """Where the training keeps its state."""
        return self.home / CHECKPOINT

    def begin(self, *, config_toml: str, environment: Environment) -> None:
        """Write what is known at the start; what an unfinished attempt left goes, but not its checkpoint and events."""
        if self.repeats and not _unfinished(self.home):
            shutil.rmtree(self.home, ignore_errors=True)
        write_text(self.home / CONFIG, config_toml)
        write_sealed(self.home / ENVIRONMENT, environment.to_table())
        self.record = replace(self.record, status=RUNNING, started=now(), host=this_host(), pid=os.getpid())
        self._write_record(self.home, self.record)
        for name in (SCORES, COST, IMPORTED, NAMES):
            (self.home / name).unlink(missing_ok=True)
        for name in (PREDICTIONS, EMBEDDINGS):
            shutil.rmtree(self.home / name, ignore_errors=True)
        _end_torn_line(self.home / EVENTS)

    def append_event(self, event: Event) -> None:
        """One line of events.jsonl."""
        append_event(self.home, event)

    def finish(self, record: Record, scores: Scores) -> None:
        """Store the scores and make this attempt the run's result, unless another writer has taken the run over."""
        if self.directory.taken_over:
            raise KeyboardInterrupt
        write_sealed(self.home / SCORES, scores.to_table())
        self.record = replace(record, status=DONE, finished=now(), files=hash_files(self.home))
        if not self.repeats:
            self._write_record(self.home, self.record)
            shutil.rmtree(self.checkpoint_dir, ignore_errors=True)
            shutil.rmtree(self.home / PREVIOUS, ignore_errors=True)
            return
        # Before the new result counts: a repetition must not begin where this one ended.
        shutil.rmtree(self.checkpoint_dir, ignore_errors=True)
        self._write_record(self.home, self.record)
        sync(self.home)
        self._write_record(self.directory.path, replace(self.record, folder=self.home.name))
        with suppress(StoreError, OSError):  # it counts already; the next process moves it
            settle(self.directory)
        self.record = self.directory.record()
        self.home = self.record.home

    def fail(self, error: str, trace: str) -> None:
        """Mark the attempt as failed, with the reason; an earlier result still counts."""
        if self.repeats:
            append_event(self.directory.path, RepetitionFailed(error=error, traceback=trace))
        self._end(replace(self.record, error=error, traceback=trace, status=FAILED))

    def interrupt(self) -> None:
        """Mark the attempt as interrupted by the user; an earlier result still counts."""
        self._end(replace(self.record, status=INTERRUPTED))

    def _end(self, record: Record) -> None:
        self.record = replace(record, finished=now())
        if self.directory.taken_over:  # the record is another writer's now
            return
        self._write_record(self.home, self.record)

    @staticmethod
    def _write_record(home: Path, record: Record) -> None:
        write_sealed(home / RECORD, record.to_table())


def settle(directory: RunDirectory) -> None:
    """Move a new result from ``.next/`` to its usual place; may be killed at any point and done again.

    While run.json points at ``.next/`` nothing else here counts. The files are linked, not moved, so that ``.next/``
    stays whole until run.json no longer points at it.
    """
    record = directory.record()
    if not record.folder:
        return
    for name in (SCORES, ENVIRONMENT, CONFIG, EVENTS, COST, IMPORTED, NAMES):
        (directory.path / name).unlink(missing_ok=True)
    for name in (PREDICTIONS, EMBEDDINGS, CHECKPOINT, PREVIOUS, ATTENTION):
        shutil.rmtree(directory.path / name, ignore_errors=True)
    for file in _result_files(record.home):
        place = file.relative_to(record.home)
        if place.as_posix() != RECORD:
            _link(file, directory.path / place)
    write_sealed(directory.record_path, replace(record, folder="").to_table())
    shutil.rmtree(record.home, ignore_errors=True)


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.part")
    part.unlink(missing_ok=True)
    try:
        os.link(source, part)
    except OSError:  # a file system without links
        shutil.copyfile(source, part)
    os.replace(part, target)


def _unfinished(home: Path) -> bool:
    """Whether there is an attempt that can be continued, and not the rest of one that was settled."""
    try:
        return read_record(home).status != DONE
    except StoreError:
        return False


def _result_files(home: Path) -> Iterator[Path]:
    """Every file of a result, in order; nothing that is hidden, passing or a link."""
    for entry in sorted(home.iterdir()):
        if entry.name.startswith(".") or entry.name in PASSING or entry.is_symlink():
            continue
        if entry.is_dir():
            yield from _result_files(entry)
        else:
            yield entry


def hash_files(home: Path) -> dict[str, StoredFile]:
    """Every file of a result with its sha256, but run.json, which holds them, and scores.json, which has a seal."""
    found = {}
    for file in _result_files(home):
        name = file.relative_to(home).as_posix()
        if name not in (RECORD, SCORES):
            with file.open("rb") as stream:
                sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
            found[name] = StoredFile(file=name, sha256=sha256, size=file.stat().st_size)
    return found


def append_event(home: Path, event: Event) -> None:
    """Add an event to the events.jsonl in ``home``, with the time; readers skip a line that a kill has torn."""
    with (home / EVENTS).open("a", encoding="utf-8") as file:
        file.write(canonical_json({"time": round(time.time(), 3), **event.to_table()}) + "\n")


def _end_torn_line(events: Path) -> None:
    """A line that a killed process left unfinished must not swallow the next one."""
    if not events.is_file():
        return
    with events.open("rb+") as file:
        if file.seek(0, os.SEEK_END) and file.seek(-1, os.SEEK_END) >= 0 and file.read(1) != b"\n":
            file.write(b"\n")
