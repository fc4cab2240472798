"""Writing into the cache so that nothing half-made is ever seen, and only one process makes a thing."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import DTypeLike, NDArray

from gcdbench.core.errors import DiskSpaceError
from gcdbench.core.work import Progress

DELETED = ".tmp-deleted-"
"""Beginning of the name of a folder that is being deleted."""

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
"""Error numbers that mean: no room."""

HEADROOM = 64 * 2**20
"""Bytes that are left free on the disk."""


def sync(path: Path) -> None:
    """Force a file or folder to the disk."""
    if path.is_dir() and os.name == "nt":  # Windows cannot open folders
        return
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_bytes(path: Path, data: bytes) -> None:
    """Write a small file: temporary name, sync, replace."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".tmp-{path.name}-{os.getpid()}")
    try:
        temporary.write_bytes(data)
        sync(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def discard(folder: Path) -> None:
    """Delete a folder of the cache, if it is there.

    It loses its name first: nobody opens what is half deleted, and a killed deletion leaves what ``remove_leftovers``
    finds.
    """
    doomed = folder.with_name(f"{DELETED}{uuid.uuid4().hex}")
    with contextlib.suppress(FileNotFoundError):
        os.rename(folder, doomed)
        shutil.rmtree(doomed, ignore_errors=True)


@contextmanager
def new_folder(final: Path) -> Iterator[Path]:
    """A temporary folder beside ``final`` that takes its name when the block ends well, and vanishes otherwise.

    Call it with the lock of ``final`` held: what an earlier, killed process left behind is removed first, and so is a
    damaged ``final``.
    """
    final.parent.mkdir(parents=True, exist_ok=True)
    temporary = final.with_name(f".tmp-{final.name}")
    shutil.rmtree(temporary, ignore_errors=True)
    discard(final)
    temporary.mkdir()
    try:
        yield temporary
        for file in temporary.iterdir():
            sync(file)
        sync(temporary)
        os.rename(temporary, final)
        sync(final.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def only_one(cache: Path, name: str, progress: Progress | None = None) -> Iterator[None]:
    """Hold the lock ``name`` of this cache; tells ``progress`` when it has to wait for another process."""
    folder = cache / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / f"{name}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        if progress:
            progress("waiting for another process", 0, 0)
        lock.acquire(poll_interval=0.1)
    try:
        yield
    finally:
        lock.release()


def require_space(folder: Path, needed: int, what: str) -> None:
    """Refuse to begin where the disk has no room for ``needed`` bytes.

    Where a folder is to be built, ask inside of ``new_folder``: what a killed build left is gone by then.
    """
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < needed + HEADROOM:
        raise no_space(folder, needed, free, what)


def no_space(folder: Path, needed: int, free: int, what: str) -> DiskSpaceError:
    """The error for a disk without room."""
    return DiskSpaceError(
        f"{what} needs {format_bytes(needed + HEADROOM)} ({format_bytes(needed)} and {format_bytes(HEADROOM)} that stay"
        f" free) in {folder}, where {format_bytes(free)} are free.",
        hint="Make room ('gcdbench data cache'), set GCDBENCH_CACHE to another disk, or choose a smaller image size.",
    )


def reserve(file: Path) -> None:
    """Claim a file's blocks now, so that a full disk is met before the work and not in the middle of it.

    What is written through a memory map can report nothing then: the process would die.
    """
    if not hasattr(os, "posix_fallocate"):
        return
    with file.open("r+b") as handle:
        try:
            os.posix_fallocate(handle.fileno(), 0, file.stat().st_size)
        except OSError as error:
            if error.errno in DISK_FULL:
                raise  # other errors only say that this file system cannot reserve


def map_array(file: Path, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any] | None:
    """The array in a ``.npy`` file, read-only and mapped; None where it is missing, cut short or another one."""
    try:
        array: NDArray[Any] = np.load(file, mmap_mode="r")
    except (FileNotFoundError, ValueError, EOFError):
        return None
    return array if array.shape == shape and array.dtype == np.dtype(dtype) else None


def touch(file: Path) -> None:
    """Remember the last use, which is what ``gcdbench data cache trim`` goes by."""
    with contextlib.suppress(OSError):  # a cache may be shared read-only
        os.utime(file)


def format_bytes(count: int) -> str:
    """A size for people, in powers of 1000."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count} bytes"
