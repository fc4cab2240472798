"""Checksums of large files, remembered as long as the file does not change."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from gcdbench.core.cache_folders import discard
from gcdbench.core.files import write_bytes
from gcdbench.core.sealed import DamagedError, read_sealed, seal_bytes
from gcdbench.core.work import Progress
from gcdbench.datasets.sources.walk import file_stamp

_BLOCK = 8 * 2**20


def file_checksum(path: Path, kind: str, cache: Path | None = None, progress: Progress | None = None) -> str:
    """``"<kind>:<hex>"`` of a file; ``kind`` is "md5" or "sha256".

    With ``cache`` the result is kept with a stamp of the file's size and times.
    """
    memory = None
    if cache is not None:
        token = hashlib.sha256(f"{kind}\n{file_stamp(path)}".encode()).hexdigest()[:32]
        memory = cache / "checksums" / token
        with suppress(FileNotFoundError, DamagedError):  # a wrong one would accuse a good file
            return read_sealed(memory).decode("ascii")
    # MD5 is what the publishers give; it guards against damage here, not against forgery.
    digest = hashlib.new(kind, usedforsecurity=False)
    total, done = path.stat().st_size, 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            done += len(block)
            if progress:
                progress(f"checking {path.name}", done, total)
    result = f"{kind}:{digest.hexdigest()}"
    if memory is not None:
        discard(memory)
        write_bytes(memory, seal_bytes(result.encode("ascii")))
    return result
