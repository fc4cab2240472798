"""Locks that the system releases when their process dies, and nothing that only looks like one."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock


def system_lock(file: Path) -> FileLock:
    """A lock of the system on ``file``; to take it raises OSError where the file system has no locks.

    A lock file that merely exists would be the fallback there: it outlives a killed process, and nobody on another
    host could tell.
    """
    return FileLock(file, fallback_to_soft=False)
