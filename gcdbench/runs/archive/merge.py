"""Merging an archive into a store: all checks first, then whole run directories, one rename each."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from gcdbench.core.errors import GCDBenchError, StoreError
from gcdbench.core.files import write_json
from gcdbench.runs.archive.verify import DEFAULT_LIMIT, ArchivedRun, open_archive, read_member, verify
from gcdbench.runs.directory import RunDirectory, now
from gcdbench.runs.reader import IMPORTED
from gcdbench.runs.record import DONE, RUNNING
from gcdbench.runs.recovery import set_aside


@dataclass(frozen=True, kw_only=True)
class Merged:
    """Runs by what happened to them; names are ``dataset/method/run_id``.

    conflicts: here already with other predictions although nothing is known that would explain it; ours were kept.
    other_numerics: the same, but made with other numerics (a sentence by name); the first is kept, and that is right.
    """

    added: list[str] = field(default_factory=list)
    present: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    busy: list[str] = field(default_factory=list)
    other_numerics: dict[str, str] = field(default_factory=dict)


def merge_archive(path: Path, runs: Path, *, limit: int = DEFAULT_LIMIT, check_only: bool = False) -> Merged:
    """Verify the whole archive, then add the runs that are not here; nothing here is ever overwritten."""
    merged = Merged()
    with open_archive(path) as archive:
        wanted = []
        for run in verify(archive, limit):
            verdict, difference = _compare(run, runs)
            if difference:
                merged.other_numerics[run.prefix] = difference
                continue
            getattr(merged, verdict).append(run.prefix)
            if verdict == "added":
                wanted.append(run)
        if wanted and not check_only:
            _extract(archive, wanted, runs, _hash(path))
    return merged


def _compare(run: ArchivedRun, runs: Path) -> tuple[str, str]:
    """What is to happen to a run and, where other numerics explain another result, what differs."""
    directory = RunDirectory(runs / run.prefix)
    if not directory.exists():
        return "added", ""
    try:
        record = directory.record()
    except GCDBenchError:  # unreadable here, intact there
        return "added", ""
    status = directory.state_of(record)
    if status == RUNNING:
        return "busy", ""
    if status != DONE:
        kept = set_aside(directory)  # finished, and a repetition of it was killed
        if kept is None:
            return "added", ""
        record = kept
    ours = {name: entry.sha256 for name, entry in record.predictions.items()}
    theirs = {name: entry.sha256 for name, entry in run.record.predictions.items()}
    if ours == theirs:
        return "present", ""
    try:
        differences = record.environment.numeric_differences(run.environment)
    except GCDBenchError:  # our env.json is damaged or was moved
        differences = []
    return "conflicts", "; ".join(differences)


def _extract(archive: zipfile.ZipFile, wanted: list[ArchivedRun], runs: Path, origin: str) -> None:
    """Write beside the store's runs under a hidden name, then rename each complete run into place."""
    try:
        runs.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".import-", dir=runs))
    except OSError as error:
        raise StoreError(f"Cannot write to '{runs}': {error.strerror or error}.") from error
    try:
        for run in wanted:
            for name, entry in run.files.items():
                target = staging / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(read_member(archive, name, entry))
            write_json(staging / run.prefix / IMPORTED, {"archive_sha256": origin, "time": now()})
        for run in wanted:
            _move(staging / run.prefix, runs / run.prefix)
    except OSError as error:
        raise StoreError(f"Cannot write to '{runs}': {error.strerror or error}.") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _move(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():  # failed or interrupted here: the finished run takes its place
        with RunDirectory(target).writing():
            pass
        shutil.rmtree(target)
    source.rename(target)


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
