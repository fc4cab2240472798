"""The image store: every image of a dataset decoded and resized once, as one memory-mapped uint8 array.

A store is a folder ``<cache>/stores/<key>`` with ``pixels.npy`` (N, S, S, 3), ``sha256.npy`` (N, 32) and ``meta.json``.
Rows are ordered by the hash of the image's content, so a row says nothing about name, class or role;
neither names nor labels are in the folder. Stores are shared by all processes and never change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gcdbench.core.arrays import IntArray, Pixels
from gcdbench.core.cached_arrays import Form, Recipe, open_cached
from gcdbench.core.disk_space import DISK_FULL
from gcdbench.core.errors import DataError
from gcdbench.core.work import Note, Progress, available_cores, log_note
from gcdbench.datasets.source import DatasetSource
from gcdbench.images.decoding import RULE, UnreadableImageError, open_image, stored_side, to_square
from gcdbench.images.hashing import (
    Digests,
    content_hashes,
    content_order,
    forget_hashes,
    hex_digests,
    refuse_unreadable,
)
from gcdbench.images.workers import map_chunks

FORMAT = 1
"""Part of every store's key, and so of the identity of every run: it stays while the pixels stay."""


@dataclass(frozen=True, kw_only=True)
class ImageStore:
    """A prepared dataset.

    pixels: (N, S, S, 3) uint8, memory-mapped, read-only.
    sha256: content hash (hexadecimal) of each row.
    order: (N,) index of the source's sample in each row; ``source.labels[store.order]`` are the labels by row.
    key: identifies contents, size and resize rule; the same on every machine.
    """

    pixels: Pixels
    sha256: tuple[str, ...]
    order: IntArray
    key: str
    folder: Path

    def __len__(self) -> int:
        return len(self.sha256)


def store_bytes(count: int, image_size: int) -> int:
    """Bytes that the store of ``count`` images for a network input of ``image_size`` takes on the disk."""
    return count * (stored_side(image_size) ** 2 * 3 + 32)


def prepare_store(
    source: DatasetSource,
    image_size: int,
    cache_dir: Path,
    workers: int | None = None,
    progress: Progress | None = None,
    note: Note = log_note,
) -> ImageStore:
    """Decode, resize and store all images of ``source`` unless that was done before, and open the store.

    Two processes may call this at once: one works, the other waits. A killed call leaves no store.
    """
    if image_size < 8:
        raise DataError(f"An image size of {image_size} is too small.", hint="Choose 8 pixels or more.")
    if len(source) == 0:
        raise DataError(f"Dataset '{source.card.name}' in {source.location} has no images.")
    work = _Work(
        source=source,
        side=stored_side(image_size),
        cache=cache_dir,
        workers=available_cores() if workers is None else workers,
        progress=progress,
        note=note,
    )
    try:
        return _open_store(work)
    except _ChangedError as error:
        # The hashes were remembered, and the files are not what was hashed: what is remembered is wrong, the files
        # are what they are. Where they were hashed just now, they change while they are read.
        if not forget_hashes(source, cache_dir):
            raise refuse_unreadable(source, error.failures) from None
        note(f"Images of '{source.card.name}' are not what was remembered of them: all are read again.")
    try:
        return _open_store(work)
    except _ChangedError as error:
        raise refuse_unreadable(source, error.failures) from None


@dataclass(frozen=True, kw_only=True)
class _Work:
    """What there is to do, and who hears of it."""

    source: DatasetSource
    side: int
    cache: Path
    workers: int
    progress: Progress | None
    note: Note

    def tell_waiting(self) -> None:
        if self.progress:
            self.progress("waiting for another process", 0, 0)


class _ChangedError(Exception):
    """Images whose content is not the one that was hashed."""

    def __init__(self, failures: list[tuple[int, str]]) -> None:
        super().__init__()
        self.failures = failures


@dataclass(frozen=True, kw_only=True)
class _Job:
    """What a worker needs to fill its rows. row_of: (N,) row of each sample; expected: (N, 32) hash of each sample."""

    raw: Callable[[int], bytes]
    decode: Callable[[bytes], Pixels] | None
    file: Path
    offset: int
    side: int
    row_of: IntArray
    expected: Digests


def _key(rows: Digests, side: int, decode: Callable[[bytes], Pixels] | None) -> str:
    # A decoder of the source's own is part of what the bytes mean.
    how = "image-file" if decode is None else _decoder_key(decode)
    head = f"store/{FORMAT}|{RULE}|{side}|{how}|{len(rows)}|".encode()
    return hashlib.sha256(head + np.ascontiguousarray(rows).tobytes()).hexdigest()[:32]


def _decoder_key(decode: Callable[[bytes], Pixels]) -> str:
    """A decoder's own ``key``, or the name of a plain function, which has no state that the name would not tell."""
    key = getattr(decode, "key", None)
    if isinstance(key, str):
        return f"{type(decode).__qualname__}:{key}"
    name = decode.__qualname__ if isinstance(decode, FunctionType) else "<object>"
    if "<" in name:  # <lambda> or <locals>: may hold values of the function around it
        raise DataError(
            f"The dataset's 'decode' is {decode!r}, whose parameters, if it has any, the image store cannot know.",
            hint="Make it a plain function of a module, or give it an attribute 'key': a string that differs whenever"
            " it decodes differently.",
        )
    return name


def _open_store(work: _Work) -> ImageStore:
    source, side = work.source, work.side
    digests = content_hashes(source, work.cache, workers=work.workers, progress=work.progress, note=work.note)
    order = content_order(digests, source.labels, source.keys)
    rows = digests[order]
    key = _key(rows, side, source.decode)

    def fill(name: str, array: NDArray[Any]) -> None:
        if name == "sha256":
            array[:] = rows
        else:
            _decode_all(work, digests, order, array)

    size = f"{side} x {side} pixels"
    recipe = Recipe(
        kind="stores",
        key=key,
        subject=f"The image store of '{source.card.name}' ({len(rows):,} images of {size})",
        title=f"images of {source.card.name}, {size}",
        forms={
            "pixels": Form(shape=(len(rows), side, side, 3), dtype=np.dtype(np.uint8)),
            "sha256": Form(shape=rows.shape, dtype=np.dtype(np.uint8)),
        },
        about={"rule": RULE, "count": len(rows), "side": side},
        fill=fill,
        waiting=work.tell_waiting,
        note=work.note,
    )
    pixels = open_cached(work.cache, recipe)["pixels"]
    folder = work.cache / recipe.kind / key
    return ImageStore(pixels=pixels, sha256=hex_digests(rows), order=order, key=key, folder=folder)


def _decode_all(work: _Work, digests: Digests, order: IntArray, array: NDArray[Any]) -> None:
    """Decode all samples into their rows of ``array``, a mapped file."""
    row_of = np.empty(len(order), dtype=np.int64)
    row_of[order] = np.arange(len(order))
    assert isinstance(array, np.memmap)
    job = _Job(
        raw=work.source.raw,
        decode=work.source.decode,
        file=Path(str(array.filename)),
        offset=int(array.offset),
        side=work.side,
        row_of=row_of,
        expected=digests,
    )
    failures: list[tuple[int, str]] = []
    changed: list[tuple[int, str]] = []
    for failed, other in map_chunks(
        _fill, job, len(order), workers=work.workers, stage="decoding images", progress=work.progress
    ):
        failures += failed
        changed += other
    if failures:
        raise refuse_unreadable(work.source, failures)
    if changed:
        raise _ChangedError(changed)


def _fill(job: _Job, chunk: range) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Decode the samples of ``chunk`` into their rows; returns (index, reason) of those that failed and changed."""
    failures, changed = [], []
    with job.file.open("r+b") as handle:
        for index in chunk:
            try:
                data = _read(job, index)
                if data is None:
                    changed.append((index, "its content is not the one that was hashed"))
                else:
                    _write_row(job, handle, index, data)
            except (UnreadableImageError, OSError) as error:
                if isinstance(error, OSError) and error.errno in DISK_FULL:
                    raise
                failures.append((index, str(error)))
    return failures, changed


def _read(job: _Job, index: int) -> bytes | None:
    """The bytes of a sample; None where they are not those that were hashed, when read a second time, too."""
    for _ in range(2):
        data = job.raw(index)
        if hashlib.sha256(data).digest() == job.expected[index].tobytes():
            return data
    return None


def _write_row(job: _Job, handle: BinaryIO, index: int, data: bytes) -> None:
    image = open_image(data) if job.decode is None else Image.fromarray(job.decode(data))
    handle.seek(job.offset + int(job.row_of[index]) * job.side**2 * 3)
    # Plain writes instead of a shared memory map: the process stays small whatever the size of the dataset.
    handle.write(to_square(image, job.side).tobytes())
