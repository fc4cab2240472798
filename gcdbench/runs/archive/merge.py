"""Merging an archive into a store: all checks first, then whole run directories, one rename each."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from gcdbench.core.errors import GCDBenchError, StoreError
from gcdbench.core.files import read_json, write_json
from gcdbench.runs.archive.verify import DEFAULT_LIMIT, ArchivedRun, open_archive, read_member, verify
from gcdbench.runs.directory import DONE, RUNNING, RunDirectory, now


@dataclass(frozen=True, kw_only=True)
class Merged:
    """Runs by what happened to them; names are ``dataset/method/run_id``.

    conflicts: here already with other predictions, so that two machines disagree; ours were kept.
    """

    added: list[str] = field(default_factory=list)
    present: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    busy: list[str] = field(default_factory=list)


def merge_archive(path: Path, runs: Path, *, limit: int = DEFAULT_LIMIT, check_only: bool = False) -> Merged:
    """Verify the whole archive, then add the runs that are not here; nothing here is ever overwritten."""
    merged = Merged()
    with open_archive(path) as archive:
        wanted = []
        for run in verify(archive, limit):
            verdict = _compare(run, runs)
            getattr(merged, verdict).append(run.prefix)
            if verdict == "added":
                wanted.append(run)
        if wanted and not check_only:
            _extract(archive, wanted, runs, _hash(path))
    return merged


def _compare(run: ArchivedRun, runs: Path) -> str:
    directory = RunDirectory(runs / run.prefix)
    if not directory.exists():
        return "added"
    try:
        status, record = directory.status(), directory.record()
    except GCDBenchError:  # unreadable here, intact there
        return "added"
    if status == RUNNING:
        return "busy"
    if (kept := directory.previous_dir / directory.record_path.name).is_file():
        status, record = DONE, read_json(kept)  # finished, and a repetition of it was killed
    if status != DONE:
        return "added"
    ours = {name: entry["sha256"] for name, entry in (record.get("predictions") or {}).items()}
    theirs = {name: entry["sha256"] for name, entry in run.record["predictions"].items()}
    return "present" if ours == theirs else "conflicts"


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
            write_json(staging / run.prefix / "imported.json", {"archive_sha256": origin, "time": now()})
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
