"""What lies in the cache directory, and how to make it smaller.

Every expensive thing is a folder ``<cache>/<kind>/<key>`` with a ``meta.json`` that holds its ``bytes`` and whose
time of modification is the time of its last use: image stores, view banks, unpacked arrays.
"""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from gcdbench.core.cache_folders import DELETED, discard
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
    """Everything complete in the cache, the least recently used first."""
    entries = []
    for file in cache.glob("*/*/meta.json"):
        if file.parent.name.startswith("."):
            continue  # being made by another process
        try:
            meta = json.loads(file.read_text(encoding="utf-8"))
            used = file.stat().st_mtime
        except (OSError, ValueError):
            continue  # being deleted by another process
        size = meta.get("bytes") if isinstance(meta, dict) else None
        if isinstance(size, int):
            entries.append(
                CacheEntry(
                    kind=file.parent.parent.name,
                    key=file.parent.name,
                    title=str(meta.get("title", "")),
                    bytes=size,
                    used=used,
                    folder=file.parent,
                )
            )
    return sorted(entries, key=lambda entry: entry.used)


def clear_cache(cache: Path, *, kind: str | None = None, key: str | None = None) -> list[CacheEntry]:
    """Delete entries (of one kind, or with one key) and what killed processes left; returns what was deleted."""
    entries = [entry for entry in list_cache(cache) if kind in (None, entry.kind)]
    chosen = [entry for entry in entries if key in (None, entry.key)]
    if key is not None and not chosen:
        raise UnknownName("cache entry", key, (entry.key for entry in entries), hint="See 'gcdbench data cache list'.")
    for entry in chosen:
        discard(entry.folder)
    if key is None:
        remove_leftovers(cache)
        if kind is None:
            for folder in ("hashes", "checksums"):
                shutil.rmtree(cache / folder, ignore_errors=True)
            # The files alone: another process may be compiling in a folder beside them.
            for file in (cache / "kernels").glob("*.so*"):
                file.unlink(missing_ok=True)
    return chosen


def trim_cache(cache: Path, limit: int) -> list[CacheEntry]:
    """Delete the least recently used entries until at most ``limit`` bytes are left; returns what was deleted."""
    remove_leftovers(cache)
    entries = list_cache(cache)
    total = sum(entry.bytes for entry in entries)
    gone = []
    for entry in entries:
        if total <= limit:
            break
        gone.append(entry)
        total -= entry.bytes
    for entry in gone:
        discard(entry.folder)
    return gone


def remove_leftovers(cache: Path) -> None:
    """Delete unfinished folders whose builder is gone, and what killed deletions left.

    A builder that is still at work holds its lock; a new one has to wait until its folder's name is free.
    """
    for folder in cache.glob("*/.tmp-*"):
        if folder.name.startswith(DELETED):
            shutil.rmtree(folder, ignore_errors=True)
        elif folder.is_dir():
            with suppress(Timeout), FileLock(_lock_file(cache, folder), timeout=0):
                shutil.rmtree(folder, ignore_errors=True)


def _lock_file(cache: Path, folder: Path) -> Path:
    """The lock that the builder of an unfinished folder holds."""
    kind, key = folder.parent.name, folder.name.removeprefix(".tmp-")
    if kind not in ("stores", "arrays"):
        return folder.parent / f"{key}.lock"
    (cache / "locks").mkdir(exist_ok=True)
    return cache / "locks" / f"{'store' if kind == 'stores' else kind}-{key}.lock"
