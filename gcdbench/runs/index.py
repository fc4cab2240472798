"""The list of runs below a directory, from the runs' own files or, where these have not changed, from an index.

The index is a file in the user's cache (:mod:`gcdbench.runs.index_file`). What it says of a run holds while the digest
of the run's files is what it was. To read and hash five small files per run takes longer than a table of 100,000 runs
may take, so the digest is taken for unchanged while the system says that no file was touched: its size, its times of
modification and of status change (which nobody can set back) and its inode are the same, and it had been left alone
for two seconds when it was read. When any of these differs the files are hashed, and read again if the digest differs.
Each entry carries a checksum of itself, so that a number that changed in the index is noticed and read from the run.
``gcdbench verify`` and ``gcdbench rescore`` do not ask the index at all.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from struct import Struct

from gcdbench.core.errors import StoreError
from gcdbench.runs.attempt import PREVIOUS
from gcdbench.runs.directory import RunDirectory
from gcdbench.runs.index_file import IndexFile, Row
from gcdbench.runs.reader import CONFIG, PARTS, RECORD, Contents, checked, parse_config, parse_contents, read_contents
from gcdbench.runs.record import DONE, RUNNING, TRANSDUCTIVE, UNREADABLE, Record
from gcdbench.runs.run_entry import RunEntry, Settings, make_entry

STAMP = Struct("=" + "qqqQ" * len(PARTS))
SETTLED_NS = 2 * 10**9
"""A file that was changed less long ago may change again without a new time: some file systems count in seconds."""


HEAD = (
    "run_id", "status", "dataset", "method", "variant", "protocol", "preset", "backbone", "image_size", "views", "seed",
    "called", "dataset_options", "reconstruction", "spent", "problem",
)  # fmt: skip
"""Fields of an entry that the index keeps together, in this order."""


def load_runs(runs: Path, *, indexed: bool = True) -> list[RunEntry]:
    """Every run below ``runs``; without the index, from the runs' own files alone."""
    collecting = gc.isenabled()
    gc.disable()  # many small objects, no cycle among them: looking for cycles would take a third of the time
    try:
        return _load_runs(runs, indexed=indexed)
    finally:
        if collecting:
            gc.enable()


def _load_runs(runs: Path, *, indexed: bool) -> list[RunEntry]:
    index = IndexFile.of(runs)
    known, settings = index.read()
    shared = {key: Settings(digest=key, text=text) for key, text in settings.items()}
    entries: list[RunEntry] = []
    fresh: list[Row] = []
    start = len(os.path.join(runs, ""))
    seen = set()
    for place in _candidates(runs):
        stamp, newest = _stamp(place)
        if stamp is None:
            continue
        name = place[start:]
        seen.add(name)
        row = known.get(name) if indexed else None
        if row is not None and row.stamp == stamp and row.settings in shared:
            entries.append(_from_row(place, row, shared[row.settings]))
            continue
        contents = read_contents(place)
        steady = newest < time.time_ns() - SETTLED_NS and _stamp(place)[0] == stamp
        found = _digest(contents)
        if row is not None and row.digest == found and row.settings in shared:
            entry = _from_row(place, row, shared[row.settings])
        else:
            entry, stays = _read_entry(place, contents)
            steady = steady and stays
        entries.append(entry)
        if steady:
            fresh.append(_to_row(name, stamp, found, entry))
            shared.setdefault(entry.settings, entry.common)
    gone = [name for name in known if name not in seen]
    index.write(fresh, {key: found.text for key, found in shared.items()}, gone=gone)
    return entries


def _candidates(runs: Path) -> Iterator[str]:
    """Directories three levels below ``runs``. Text, not paths: a store may hold a hundred thousand runs."""
    for dataset in _subdirectories(str(runs)):
        for method in _subdirectories(dataset):
            yield from _subdirectories(method)


def _subdirectories(place: str) -> list[str]:
    try:
        with os.scandir(place) as entries:
            return sorted(e.path for e in entries if e.is_dir(follow_symlinks=False) and not e.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError:  # not for us: it is listed as it is, as something that cannot be read
        return [place]


def _stamp(place: str) -> tuple[bytes | None, int]:
    """Sizes, times and inodes of a run's files, and the newest of their times; None where there is no run."""
    found: list[int] = []
    newest = 0
    for name in PARTS:
        try:
            at = os.stat(f"{place}/{name}")
        except OSError as error:
            if name == RECORD and isinstance(error, (FileNotFoundError, NotADirectoryError)):
                return None, 0
            found += (0, 0, 0, 0)
            continue
        modified, changed = at.st_mtime_ns, at.st_ctime_ns
        found += (at.st_size, modified, changed, at.st_ino)
        newest = max(newest, modified, changed)
    return STAMP.pack(*found), newest


def _digest(contents: Contents) -> str:
    """sha256 of a run's files, one after another; of one that cannot be read, that counts."""
    total = hashlib.sha256()
    for content in contents.values():
        known = content if isinstance(content, bytes) else b""
        total.update(b"%d %d:" % (isinstance(content, bytes), len(known)))
        total.update(known)
    return total.hexdigest()


def _read_entry(place: str, contents: Contents) -> tuple[RunEntry, bool]:
    """A run from its own files, and whether it stays as it is until one of them changes."""
    path = Path(place)
    try:
        record = parse_contents(contents, path)
    except StoreError as error:
        return _unreadable(path, error.message), False
    status, problem = RunDirectory(path).state_of(record), record.error
    if status != DONE and (path / PREVIOUS).is_dir():
        problem = "an earlier result is kept in 'previous'; the same command brings it back"
    config = contents[CONFIG]
    called = _called(record, config) if isinstance(config, bytes) else ""
    entry = make_entry(record, status=status, problem=problem, called=called)
    return entry, record.status != RUNNING and not record.folder


def _unreadable(path: Path, problem: str) -> RunEntry:
    return RunEntry(
        place=str(path),
        run_id=path.name,
        status=UNREADABLE,
        dataset=path.parent.parent.name,
        method=path.parent.name,
        problem=problem,
    )


def _called(record: Record, config: bytes) -> str:
    """From the top of config.toml: to read all of it would take longer than everything else together."""
    try:
        top = checked(record, CONFIG, config).partition(b"\n[")[0]
        return str(parse_config(top, CONFIG).get("dataset", ""))
    except StoreError:  # a damaged copy of what the record says
        return ""


def _to_row(name: str, stamp: bytes, digest: str, entry: RunEntry) -> Row:
    return Row(
        name=name,
        stamp=stamp,
        digest=digest,
        settings=entry.settings,
        head=json.dumps([getattr(entry, key) for key in HEAD]),
        scored=entry.scored,
    )


def _from_row(place: str, row: Row, common: Settings) -> RunEntry:
    entry = object.__new__(RunEntry)
    # As its constructor would, but without a call for each field: there may be a hundred thousand entries.
    vars(entry).update(
        zip(HEAD, json.loads(row.head), strict=True),
        place=place,
        common=common,
        scored=row.scored,
        evaluation=TRANSDUCTIVE,
        measured={},
    )
    return entry


def find_run(runs: Path, name: str) -> Path:
    """The run directory meant by ``name``: a path, a run id, or the unambiguous start of one."""
    if RunDirectory(Path(name)).exists():
        return Path(name)
    places = (place for place in _candidates(runs) if name and os.path.basename(place).startswith(name))
    matches = [Path(place) for place in places if os.path.isfile(f"{place}/{RECORD}")]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise StoreError(
            f"'{name}' is the start of {len(matches)} run ids: {', '.join(m.name for m in matches[:5])}.",
            hint="Write more of the id.",
        )
    raise StoreError(f"There is no run '{name}' below '{runs}'.", hint="'gcdbench status' lists the runs.")
