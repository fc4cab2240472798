"""Space on the disk: asked for before the work, claimed before the first byte, and one sentence where there is none."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gcdbench.core.errors import ConfigError, DiskSpaceError

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
"""Error numbers that mean that there is no space."""

HEADROOM = 64 * 2**20
"""Bytes that are left free on the disk."""

_UNITS = {"": 1, "B": 1} | {
    f"{letter}{rest}": base**power
    for power, letter in enumerate("KMGT", start=1)
    for rest, base in (("", 1000), ("B", 1000), ("IB", 1024))
}


def require_space(folder: Path, needed: int, what: str) -> None:
    """Refuse to begin where the disk has no room for ``needed`` bytes; ``what`` begins the sentence.

    Ask when the leftovers of a killed attempt are gone: their room counts as free.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(folder).free < needed + HEADROOM:
        raise _no_space(folder, needed, what)


@contextmanager
def room_for(folder: Path, needed: int, what: str) -> Iterator[None]:
    """As :func:`require_space`, and the same sentence where the disk runs full inside the block."""
    require_space(folder, needed, what)
    try:
        yield
    except OSError as error:
        if error.errno in DISK_FULL:
            raise _no_space(folder, needed, what) from error
        raise


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


def format_bytes(count: int) -> str:
    """A size for people, in powers of 1000."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count} bytes"


def parse_size(text: str) -> int:
    """``20GB``, ``20G``, ``500 MB`` (powers of 1000) or ``20GiB`` (powers of 1024) as a number of bytes."""
    match = re.fullmatch(r"\s*([0-9]{1,15}(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", text)
    if not match or match[2].upper() not in _UNITS:
        raise ConfigError(f"'{text}' is not a size.", hint="For example: 500MB, 20GB, 20GiB.")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def _no_space(folder: Path, needed: int, what: str) -> DiskSpaceError:
    free = format_bytes(shutil.disk_usage(folder).free)
    return DiskSpaceError(
        f"{what} needs {format_bytes(needed + HEADROOM)} ({format_bytes(needed)} and {format_bytes(HEADROOM)} that stay"
        f" free) in {folder}, where {free} are free.",
        hint="Make room ('gcdbench data cache'), set GCDBENCH_CACHE to a larger disk, or store less: a smaller"
        " image_size, fewer views (--set views=bank8:4) or none (--set views=online).",
    )
