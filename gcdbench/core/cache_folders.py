"""Folders of the cache: nothing half-made is ever seen under its name, and only one process makes a thing."""

from __future__ import annotations

import contextlib
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

from gcdbench.core.files import sync
from gcdbench.core.work import Progress

DELETED = ".tmp-deleted-"
"""Beginning of the name of a folder that is being deleted."""


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
