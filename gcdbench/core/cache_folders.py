"""Folders of the cache: one process at a time changes one, and what is deleted loses its name first."""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from gcdbench.core.errors import StoreError

KINDS = ("stores", "banks", "features", "arrays")
"""Folders of the cache whose folders are entries: each holds sealed arrays and a ``meta.json``."""

META = "meta.json"
"""Says what an entry is; its time of modification is the time of the entry's last use."""

UNFINISHED = ".tmp-"
"""Beginning of the name of what is being made."""

DELETED = ".tmp-deleted-"
"""Beginning of the name of what is being deleted."""


def discard(path: Path) -> None:
    """Delete a folder or file of the cache, if it is there.

    It loses its name first: nobody opens something half deleted, and a killed deletion leaves what ``remove_leftovers``
    finds.
    """
    doomed = path.with_name(f"{DELETED}{uuid.uuid4().hex}")
    with contextlib.suppress(FileNotFoundError):
        os.rename(path, doomed)
        remove(doomed)


def remove(path: Path) -> None:
    """Delete what has no name that anybody would open: a file or a folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def only_one(cache: Path, name: str, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the lock ``name`` of this cache; calls ``waiting`` when it has to wait for another process."""
    try:
        with changing(cache):
            lock = FileLock(lock_file(cache, name))
            lock.acquire(timeout=0)
    except Timeout:
        if waiting:
            waiting()
        lock.acquire(poll_interval=0.1)
    try:
        yield
    finally:
        lock.release()


def lock_file(cache: Path, name: str) -> Path:
    """Where the lock of that name is; its folder is made."""
    folder = cache / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{name}.lock"


@contextmanager
def changing(cache: Path) -> Iterator[None]:
    """One sentence where the cache cannot be changed: no right to, a full disk, a file in the place of a folder."""
    try:
        yield
    except Timeout:
        raise
    except OSError as error:
        place = error.filename or cache
        raise StoreError(
            f"The cache cannot be changed: {place}: {error.strerror or error}.",
            hint="Remove what is in the way, make the folder writable, or set GCDBENCH_CACHE to another folder.",
        ) from error


def touch(file: Path) -> None:
    """Remember the last use, which is what ``gcdbench data cache trim`` goes by."""
    with contextlib.suppress(OSError):  # a cache may be shared read-only
        os.utime(file)
