"""The list of runs below a directory, with a disposable cache of what each run.json and scores.json say."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gcdbench.core.errors import GCDBenchError, StoreError
from gcdbench.core.files import write_text
from gcdbench.runs.directory import DONE, FAILED, RUNNING, UNREADABLE, RunDirectory

INDEX_NAME = ".index.json"
INDEX_SCHEMA = 3
BULK = ("split", "traceback")


@dataclass(frozen=True, kw_only=True)
class RunEntry:
    """One run as the index knows it; ``scores`` is empty unless the run is done.

    What is bulky and never tabulated (BULK, confusion matrices) stays in the run's own files; of the split, the counts
    are kept.
    """

    path: Path
    record: dict[str, Any]
    scores: dict[str, Any]
    status: str
    problem: str = ""

    @property
    def run_id(self) -> str:
        """Name of the run."""
        return self.path.name


def run_directories(runs: Path) -> Iterator[Path]:
    """Directories three levels below ``runs`` that hold a run.json."""
    for run in _candidates(runs):
        if os.path.isfile(f"{run}/run.json"):
            yield Path(run)


def _candidates(runs: Path) -> Iterator[str]:
    """Directories three levels below ``runs``. Text, not paths: a store may hold ten thousand runs."""
    for dataset in _subdirectories(runs):
        for method in _subdirectories(dataset):
            yield from _subdirectories(method)


def _subdirectories(path: Path | str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return sorted(e.path for e in entries if e.is_dir(follow_symlinks=False) and not e.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _stamp(run: str) -> list[int] | None:
    """Times and sizes of the two files the cache mirrors; None where there is no run."""
    try:
        record = os.stat(f"{run}/run.json")
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        scores = os.stat(f"{run}/scores.json")
    except FileNotFoundError:
        return [record.st_mtime_ns, record.st_size, 0, 0]
    return [record.st_mtime_ns, record.st_size, scores.st_mtime_ns, scores.st_size]


def _read_entry(path: Path) -> RunEntry:
    directory = RunDirectory(path)
    try:
        record = directory.record()
        status = directory.status() if record.get("status") == RUNNING else str(record.get("status"))
        scores = directory.scores() if status == DONE else {}
    except GCDBenchError as error:
        return RunEntry(path=path, record={}, scores={}, status=UNREADABLE, problem=error.message)
    counts = (record.get("split") or {}).get("counts")
    for bulky in BULK:
        record.pop(bulky, None)
    if counts:
        record["split"] = {"counts": counts}
    for scored in scores.get("sets", {}).values():
        scored.pop("confusion", None)
    return RunEntry(path=path, record=record, scores=scores, status=status, problem=str(record.get("error", "")))


def load_runs(runs: Path) -> list[RunEntry]:
    """Every run below ``runs``; finished ones come from the cache where their files have not changed."""
    collecting = gc.isenabled()
    gc.disable()  # millions of small objects, no cycle among them: looking for cycles would take a third of the time
    try:
        return _load_runs(runs)
    finally:
        if collecting:
            gc.enable()


def _load_runs(runs: Path) -> list[RunEntry]:
    cache_path = runs / INDEX_NAME
    cache = _load_cache(cache_path)
    entries: list[RunEntry] = []
    fresh: dict[str, Any] = {}
    changed = False
    start = len(os.path.join(runs, ""))
    for run in _candidates(runs):
        stamp = _stamp(run)
        if stamp is None:
            continue
        name = run[start:]
        known = cache.get(name)
        if known is not None and known["stamp"] == stamp:
            fresh[name] = known
            record = known["record"]
            entries.append(
                RunEntry(
                    path=Path(run),
                    record=record,
                    scores=known["scores"],
                    status=known["status"],
                    problem=str(record.get("error", "")),
                )
            )
            continue
        entry = _read_entry(Path(run))
        entries.append(entry)
        if entry.status in (DONE, FAILED):  # other states change without a change of the files
            fresh[name] = {"stamp": stamp, "record": entry.record, "scores": entry.scores, "status": entry.status}
            changed = True
    if changed or len(fresh) != len(cache):
        _save_cache(cache_path, fresh)
    return entries


def _load_cache(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(value, dict) or value.get("schema") != INDEX_SCHEMA or not isinstance(value.get("runs"), dict):
        return {}
    return dict(value["runs"])


def _save_cache(path: Path, runs: dict[str, Any]) -> None:
    if not path.parent.is_dir():
        return
    try:
        write_text(path, json.dumps({"schema": INDEX_SCHEMA, "runs": runs}, separators=(",", ":")))
    except StoreError:  # a read-only store can still be listed
        return


def find_run(runs: Path, name: str) -> Path:
    """The run directory meant by ``name``: a path, a run id, or the unambiguous start of one."""
    if RunDirectory(Path(name)).exists():
        return Path(name)
    matches = [path for path in run_directories(runs) if path.name.startswith(name)] if name else []
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise StoreError(
            f"'{name}' is the start of {len(matches)} run ids: {', '.join(m.name for m in matches[:5])}.",
            hint="Write more of the id.",
        )
    raise StoreError(f"There is no run '{name}' below '{runs}'.", hint="'gcdbench status' lists the runs.")
