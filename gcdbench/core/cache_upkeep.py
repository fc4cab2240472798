"""What is in the cache directory, and how to make it smaller.

Every expensive thing is a folder ``<cache>/<kind>/<key>`` (see :mod:`gcdbench.core.cached_arrays`): image stores, view
banks, features, unpacked arrays.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from gcdbench.core.cache_folders import DELETED, KINDS, META, UNFINISHED, discard, lock_file, remove
from gcdbench.core.cached_arrays import remove_unfinished
from gcdbench.core.errors import UnknownName


@dataclass(frozen=True, kw_only=True)
class CacheEntry:
    """One thing in the cache; ``used`` is the time of its last use (seconds since 1970)."""

    kind: str
    key: str
    title: str
    bytes: int
    used: float
    folder: Path


def list_cache(cache: Path) -> list[CacheEntry]:
    """Everything in the cache that has a name, the least recently used first; damaged entries as well."""
    entries = [
        CacheEntry(
            kind=kind,
            key=folder.name,
            title=_title(folder),
            bytes=_size(folder),
            used=_last_use(folder),
            folder=folder,
        )
        for kind in KINDS
        for folder in _folders(cache / kind)
        if not folder.name.startswith(".") and folder.is_dir()
    ]
    return sorted(entries, key=lambda entry: entry.used)


def clear_cache(cache: Path, *, kind: str | None = None, key: str | None = None) -> list[CacheEntry]:
    """Delete entries (of one kind, or with one key) and what killed processes left; returns what was deleted.

    What another process is making right now stays.
    """
    entries = [entry for entry in list_cache(cache) if kind in (None, entry.kind)]
    chosen = [entry for entry in entries if key in (None, entry.key)]
    if key is not None and not chosen:
        raise UnknownName("cache entry", key, (entry.key for entry in entries), hint="See 'gcdbench data cache list'.")
    gone = [entry for entry in chosen if _delete(cache, entry)]
    if key is None:
        remove_leftovers(cache)
        if kind is None:
            for folder in ("hashes", "checksums", "speed"):
                remove(cache / folder)
            # The files alone: another process may be compiling in a folder next to them.
            for file in (cache / "kernels").glob("*.so*"):
                file.unlink(missing_ok=True)
    return gone


def trim_cache(cache: Path, limit: int) -> list[CacheEntry]:
    """Delete the least recently used entries until at most ``limit`` bytes are left; returns what was deleted."""
    remove_leftovers(cache)
    entries = list_cache(cache)
    total = sum(entry.bytes for entry in entries)
    gone = []
    for entry in entries:
        if total <= limit:
            break
        if _delete(cache, entry):
            gone.append(entry)
            total -= entry.bytes
    return gone


def remove_leftovers(cache: Path) -> None:
    """Delete what killed builders and killed deletions left; what somebody is making right now stays."""
    for kind in KINDS:
        for folder in _folders(cache / kind):
            if folder.name.startswith(DELETED):
                remove(folder)
            elif folder.name.startswith(UNFINISHED):  # of version 0.1, which built whole folders
                with _lock(cache, kind, folder.name.removeprefix(UNFINISHED)) as held:
                    if held:
                        remove(folder)
            elif any(folder.glob(".*")):
                with _lock(cache, kind, folder.name) as held:
                    if held:
                        remove_unfinished(folder)
                        if not any(folder.glob("*.npy")):
                            discard(folder)


def _delete(cache: Path, entry: CacheEntry) -> bool:
    with _lock(cache, entry.kind, entry.key) as held:
        if held:
            discard(entry.folder)
        return held


@contextmanager
def _lock(cache: Path, kind: str, key: str) -> Iterator[bool]:
    """Whether nobody is making this entry; while the block lasts, nobody begins to."""
    lock = FileLock(lock_file(cache, f"{kind}-{key}"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def _folders(kind: Path) -> list[Path]:
    return sorted(kind.iterdir()) if kind.is_dir() else []


def _size(folder: Path) -> int:
    try:
        with os.scandir(folder) as files:
            return sum(file.stat(follow_symlinks=False).st_size for file in files)
    except FileNotFoundError:  # being deleted by another process
        return 0


def describe_entries(cache: Path, kind: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The folder of each entry of one kind, and what its description says; those without one are left out."""
    for folder in _folders(cache / kind):
        meta = _read_meta(folder)
        if meta is not None and not folder.name.startswith("."):
            yield folder, meta


def _read_meta(folder: Path) -> dict[str, Any] | None:
    try:
        meta = json.loads((folder / META).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return meta if isinstance(meta, dict) else None


def _title(folder: Path) -> str:
    meta = _read_meta(folder)
    return "damaged" if meta is None else str(meta.get("title", ""))


def _last_use(folder: Path) -> float:
    for path in (folder / META, folder):
        try:
            return path.stat().st_mtime
        except OSError:
            continue
    return 0.0
