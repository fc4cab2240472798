"""What lies in the cache directory, and how to make it smaller.

Every expensive thing is a folder ``<cache>/<kind>/<key>`` with a ``meta.json`` that holds its ``bytes`` and whose
time of modification is the time of its last use: image stores, view banks, unpacked arrays.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from gcdbench.errors import ConfigError

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


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
    chosen = [entry for entry in list_cache(cache) if kind in (None, entry.kind) and key in (None, entry.key)]
    _delete(chosen)
    if key is None:
        remove_leftovers(cache)
        if kind is None:
            for folder in ("hashes", "checksums"):
                shutil.rmtree(cache / folder, ignore_errors=True)
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
    _delete(gone)
    return gone


def remove_leftovers(cache: Path) -> None:
    """Delete unfinished folders whose builder is gone; one that is still at work holds its lock."""
    for folder in cache.glob("*/.tmp-*"):
        if not folder.is_dir():
            continue
        key = folder.name.removeprefix(".tmp-")
        kind = {"stores": "store", "arrays": "arrays"}.get(folder.parent.name, "")
        locks = [cache / "locks" / f"{kind}-{key}.lock", folder.parent / f"{key}.lock"]
        if all(_is_free(lock) for lock in locks if lock.exists()):
            shutil.rmtree(folder, ignore_errors=True)


def parse_size(text: str) -> int:
    """``20GB`` or ``500 MB`` as a number of bytes."""
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", text)
    if not match or match[2].upper() not in _UNITS:
        raise ConfigError(f"'{text}' is not a size.", hint="For example: 500MB, 20GB.")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def _delete(entries: Iterable[CacheEntry]) -> None:
    for entry in entries:
        # First the file that says "complete", so that nobody opens what is half deleted.
        (entry.folder / "meta.json").unlink(missing_ok=True)
        shutil.rmtree(entry.folder, ignore_errors=True)


def _is_free(path: Path) -> bool:
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    lock.release()
    return True
