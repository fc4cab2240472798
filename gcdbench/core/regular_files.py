"""Regular files only: a device or a pipe in the place of an image would be read for ever."""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path


def open_regular(path: str | Path) -> io.BufferedReader:
    """Open a file for reading. A device, pipe or folder is an OSError at once."""
    if "\0" in str(path):  # a name that somebody has made up; Python's own complaint is not an OSError
        raise OSError(errno.EINVAL, "a name cannot hold a null byte", repr(str(path)))
    file = open(path, "rb", opener=_open_at_once)  # noqa: SIM115  # the caller closes it
    try:
        require_regular(os.fstat(file.fileno()))
    except OSError:
        file.close()
        raise
    return file


def read_regular(path: str | Path) -> bytes:
    """The content of a file."""
    with open_regular(path) as file:
        return file.read()


def require_regular(status: os.stat_result) -> None:
    """Raise an OSError that says what the thing is instead of a file."""
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is a device, a pipe or a socket, not a file")


def _open_at_once(path: str, flags: int) -> int:
    # Without O_NONBLOCK opening a pipe waits for somebody who writes into it.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
