"""Merging an archive into a store: all checks first, then whole run directories, one rename each."""

from __future__ import annotations

import errno
import hashlib
import shutil
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from gcdbench.core.errors import GCDBenchError, StoreError
from gcdbench.core.files import write_json
from gcdbench.plugins.manager import PluginManager, get_manager
from gcdbench.runs.archive.verify import DEFAULT_LIMIT, ArchivedRun, open_archive, read_member, verify
from gcdbench.runs.directory import RunBusy, RunDirectory, now
from gcdbench.runs.reader import IMPORTED, SCORES
from gcdbench.runs.record import DONE, RUNNING
from gcdbench.runs.recovery import set_aside
from gcdbench.runs.strict_json import write_sealed

OCCUPIED = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EACCES)
"""What a rename onto a folder that is in use says; Windows says that access is denied."""
ATTEMPTS = 3


@dataclass(frozen=True, kw_only=True)
class Merged:
    """Runs by what happened to them; names are ``dataset/method/run_id``.

    conflicts: here already with other predictions although nothing is known that would explain it; ours were kept.
    other_numerics: the same, but made with other numerics (a sentence by name); the first is kept, and that is right.
    dropped, replaced: scores, by the run that was added, that no metric here computes, or that a metric here computes
    in another version and otherwise.
    """

    added: list[str] = field(default_factory=list)
    present: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    busy: list[str] = field(default_factory=list)
    other_numerics: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, tuple[str, ...]] = field(default_factory=dict)
    replaced: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def take(self, run: ArchivedRun, verdict: str, difference: str) -> None:
        """Write down what happened to a run."""
        if difference:
            self.other_numerics[run.prefix] = difference
            return
        getattr(self, verdict).append(run.prefix)
        if verdict == "added":
            self.dropped.update({run.prefix: run.scored.dropped} if run.scored.dropped else {})
            self.replaced.update({run.prefix: run.scored.replaced} if run.scored.replaced else {})


def merge_archive(
    path: Path,
    runs: Path,
    *,
    manager: PluginManager | None = None,
    limit: int = DEFAULT_LIMIT,
    check_only: bool = False,
) -> Merged:
    """Verify the whole archive, then add the runs that are not here; nothing here is ever overwritten.

    Every score is computed again with the metrics of ``manager`` (default: those installed), and those are kept.
    """
    merged = Merged()
    with open_archive(path) as archive:
        wanted = []
        for run in verify(archive, manager or get_manager(), limit):
            verdict, difference = _compare(run, runs)
            if verdict == "added" and not check_only:
                wanted.append(run)
            else:
                merged.take(run, verdict, difference)
        if wanted:
            _extract(archive, wanted, runs, _hash(path), merged)
    return merged


def _compare(run: ArchivedRun, runs: Path, *, ours: bool = False) -> tuple[str, str]:
    """What is to happen to a run and, where other numerics explain another result, what differs.

    ours: this process holds the run's lock, so that nobody can be running it.
    """
    directory = RunDirectory(runs / run.prefix)
    if not directory.exists():
        return "added", ""
    try:
        record = directory.record()
    except GCDBenchError:  # unreadable here, intact there
        return "added", ""
    status = directory.state_of(record)
    if status == RUNNING and not ours:
        return "busy", ""
    if status != DONE:
        kept = set_aside(directory)  # finished, and a repetition of it was killed
        if kept is None:
            return "added", ""
        record = kept
    here = {name: entry.sha256 for name, entry in record.predictions.items()}
    there = {name: entry.sha256 for name, entry in run.record.predictions.items()}
    if here == there:
        return "present", ""
    try:
        differences = record.environment.numeric_differences(run.environment)
    except GCDBenchError:  # our env.json is damaged or was moved
        differences = []
    return "conflicts", "; ".join(differences)


def _extract(archive: zipfile.ZipFile, wanted: list[ArchivedRun], runs: Path, origin: str, merged: Merged) -> None:
    """Write next to the store's runs under a hidden name, then rename each complete run into place."""
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
            write_sealed(staging / run.prefix / SCORES, run.scored.scores.to_table())
            write_json(staging / run.prefix / IMPORTED, {"archive_sha256": origin, "time": now()})
        for run in wanted:
            merged.take(run, *_place(staging, run, runs))
    except OSError as error:
        raise StoreError(f"Cannot write to '{runs}': {error.strerror or error}.") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _place(staging: Path, run: ArchivedRun, runs: Path) -> tuple[str, str]:
    """Put an unpacked run into its place, or say why not: since it was compared, others may have changed it.

    A rename onto a folder that holds anything fails, even over a network, so only one of two imports adds the run.
    """
    source, target = staging / run.prefix, runs / run.prefix
    for _ in range(ATTEMPTS):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            source.rename(target)
            return "added", ""
        except OSError as error:
            if error.errno not in OCCUPIED:
                raise
        try:
            with RunDirectory(target).writing():  # nobody else is at it while it is compared and moved away
                verdict, difference = _compare(run, runs, ours=True)
                if verdict != "added":
                    return verdict, difference
                # Failed, interrupted or unreadable here: the finished run takes its place.
                target.rename(Path(tempfile.mkdtemp(prefix="replaced-", dir=staging)) / run.record.run_id)
        except RunBusy:
            verdict, difference = _compare(run, runs)
            return ("busy", "") if verdict == "added" else (verdict, difference)
    return "busy", ""


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
