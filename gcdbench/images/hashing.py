"""Hashes of every sample's content: the base of sample ids, duplicates and store keys."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gcdbench.core.arrays import IntArray
from gcdbench.core.cache_folders import changing, discard, only_one
from gcdbench.core.errors import DataError
from gcdbench.core.files import write_bytes
from gcdbench.core.sealed import DamagedError, read_sealed, seal_bytes
from gcdbench.core.work import Note, Progress, log_note
from gcdbench.datasets.source import DatasetSource
from gcdbench.images.workers import map_chunks

Digests = NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class _Reading:
    raw: Callable[[int], bytes]


def content_hashes(
    source: DatasetSource,
    cache: Path | None,
    *,
    workers: int,
    progress: Progress | None = None,
    note: Note = log_note,
) -> Digests:
    """(N, 32) uint8, the sha256 of each sample's bytes in the source's order.

    Where the source has a fingerprint the result is kept in ``cache/hashes``, so that files which have not
    changed are not read again. The file holds hashes only, no names, and is sealed: a damaged one accuses nobody.
    """
    file = _memory(source, cache)
    if file is None or cache is None:
        return _compute(source, workers, progress)
    known = _read(file, len(source), note)
    if known is not None:
        return known
    waiting = (lambda: progress("waiting for another process", 0, 0)) if progress else None
    with only_one(cache, f"hashes-{file.stem}", waiting):
        known = _read(file, len(source), lambda sentence: None)
        if known is None:
            known = _compute(source, workers, progress)
            with changing(cache):
                discard(file)
            write_bytes(file, seal_bytes(known.tobytes()))
    return known


def forget_hashes(source: DatasetSource, cache: Path) -> bool:
    """Forget what is remembered of this source; False where nothing was."""
    file = _memory(source, cache)
    if file is None or not file.exists():
        return False
    discard(file)
    return True


def content_order(digests: Digests, labels: IntArray, keys: tuple[str, ...]) -> IntArray:
    """(N,) index of the sample in each row of the store: by content hash, equal contents by class, then by key."""
    rank = np.empty(len(keys), dtype=np.int64)
    rank[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    words = np.ascontiguousarray(digests).view(">u8")
    return np.lexsort((rank, labels, *words.T[::-1])).astype(np.int64)


def hex_digests(digests: Digests) -> tuple[str, ...]:
    """The hashes as hexadecimal strings."""
    text = np.ascontiguousarray(digests).tobytes().hex()
    return tuple(text[start : start + 64] for start in range(0, len(text), 64))


def refuse_unreadable(source: DatasetSource, failures: list[tuple[int, str]]) -> DataError:
    """One sentence that names the first files that cannot be read."""
    shown = "; ".join(f"{source.keys[index]} ({reason})" for index, reason in failures[:3])
    more = f" and {len(failures) - 3} more" if len(failures) > 3 else ""
    return DataError(
        f"{len(failures)} of {len(source)} images of '{source.card.name}' cannot be read: {shown}{more}.",
        hint=f"'gcdbench data audit' lists them all; repair or remove them in {source.location}; with folder: and csv: "
        "they can be left out, --dataset-set on_unreadable=skip.",
    )


def _compute(source: DatasetSource, workers: int, progress: Progress | None) -> Digests:
    parts: list[Digests] = []
    failures: list[tuple[int, str]] = []
    reading = _Reading(raw=source.raw)
    for part, failed in map_chunks(
        _hash_chunk, reading, len(source), workers=workers, stage="reading files", progress=progress
    ):
        parts.append(part)
        failures += failed
    if failures:
        raise refuse_unreadable(source, failures)
    return np.concatenate(parts) if parts else np.empty((0, 32), dtype=np.uint8)


def _hash_chunk(reading: _Reading, chunk: range) -> tuple[Digests, list[tuple[int, str]]]:
    found = np.zeros((len(chunk), 32), dtype=np.uint8)
    failures = []
    for position, index in enumerate(chunk):
        try:
            found[position] = np.frombuffer(hashlib.sha256(reading.raw(index)).digest(), dtype=np.uint8)
        except OSError as error:
            failures.append((index, error.strerror or str(error)))
    return found, failures


def _memory(source: DatasetSource, cache: Path | None) -> Path | None:
    """Where the hashes of this source are remembered; None where they are not."""
    if source.fingerprint is None or cache is None:
        return None
    # Name and place as well: the fingerprints of two datasets need not differ.
    named = (source.card.name, source.location, source.fingerprint, *source.keys)
    token = hashlib.sha256("\0".join(named).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return cache / "hashes" / f"{token}.sealed"


def _read(file: Path, count: int, note: Note) -> Digests | None:
    try:
        content = read_sealed(file)
        if len(content) != 32 * count:
            raise DamagedError("it holds another number of hashes")
    except FileNotFoundError:
        return None
    except DamagedError as error:
        note(f"The remembered hashes in {file} are damaged ({error}): the images are read again.")
        return None
    return np.frombuffer(content, dtype=np.uint8).reshape(count, 32)
