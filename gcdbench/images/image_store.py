"""The image store: every image of a dataset decoded and resized once, as one memory-mapped uint8 array.

A store is a folder ``<cache>/stores/<key>`` with ``pixels.npy`` (N, S, S, 3), ``sha256.npy`` (N, 32) and ``meta.json``.
Rows are ordered by the hash of the image's content, so a row says nothing about name, class or role;
neither names nor labels are in the folder. Stores are shared by all processes and never change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import BinaryIO

import numpy as np
from PIL import Image

from gcdbench.core.arrays import IntArray, Pixels
from gcdbench.core.cache_folders import map_array, new_folder, only_one, touch
from gcdbench.core.disk_space import DISK_FULL, reserve, room_for
from gcdbench.core.errors import DataError
from gcdbench.core.work import Progress, available_cores
from gcdbench.datasets.source import DatasetSource
from gcdbench.images.decoding import RULE, UnreadableImageError, open_image, stored_side, to_square
from gcdbench.images.hashing import Digests, content_hashes, content_order, hex_digests, refuse_unreadable
from gcdbench.images.workers import map_chunks

FORMAT = 1


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
) -> ImageStore:
    """Decode, resize and store all images of ``source`` unless that was done before, and open the store.

    Two processes may call this at once: one works, the other waits. A killed call leaves no store.
    """
    if image_size < 8:
        raise DataError(f"An image size of {image_size} is too small.", hint="Choose 8 pixels or more.")
    if len(source) == 0:
        raise DataError(f"Dataset '{source.card.name}' in {source.location} has no images.")
    workers = available_cores() if workers is None else workers
    digests = content_hashes(source, cache_dir, workers=workers, progress=progress)
    order = content_order(digests, source.labels, source.keys)
    side = stored_side(image_size)
    rows = digests[order]
    key = _key(rows, side, source.decode)
    folder = cache_dir / "stores" / key
    while True:  # somebody may clear the cache between building and opening
        touch(folder / "meta.json")
        pixels = _open(folder, len(source), side)
        if pixels is not None:
            break
        with only_one(cache_dir, f"store-{key}", progress):
            if _open(folder, len(source), side) is None:
                _build(source, folder, rows, order, side, workers, progress)
    return ImageStore(pixels=pixels, sha256=hex_digests(rows), order=order, key=key, folder=folder)


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
            hint="Make it a plain function of a module, or give it an attribute 'key': a text that differs whenever"
            " it decodes differently.",
        )
    return name


def _build(
    source: DatasetSource,
    folder: Path,
    rows: Digests,
    order: IntArray,
    side: int,
    workers: int,
    progress: Progress | None,
) -> None:
    needed = len(rows) * (side**2 * 3 + 32)
    what = f"The image store of '{source.card.name}' ({len(rows):,} images of {side} x {side} pixels)"
    try:
        with new_folder(folder) as temporary, room_for(folder.parent, needed, what):
            file = temporary / "pixels.npy"
            array = np.lib.format.open_memmap(file, mode="w+", dtype=np.uint8, shape=(len(rows), side, side, 3))
            offset = int(array.offset)
            del array
            reserve(file)
            row_of = np.empty(len(order), dtype=np.int64)
            row_of[order] = np.arange(len(order))
            expected = np.empty_like(rows)
            expected[order] = rows
            job = _Job(
                raw=source.raw,
                decode=source.decode,
                file=file,
                offset=offset,
                side=side,
                row_of=row_of,
                expected=expected,
            )
            failures: list[tuple[int, str]] = []
            for failed in map_chunks(
                _fill, job, len(rows), workers=workers, stage="decoding images", progress=progress
            ):
                failures += failed
            if failures:
                raise refuse_unreadable(source, failures)
            np.save(temporary / "sha256.npy", rows)
            title = f"images of {source.card.name}, {side} x {side} pixels"
            meta: dict[str, object] = {"format": FORMAT, "rule": RULE, "title": title}
            meta |= {"count": len(rows), "side": side, "bytes": needed}
            (temporary / "meta.json").write_text(json.dumps(meta, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as error:
        raise DataError(f"{what} could not be written to {folder.parent}: {error.strerror or error}.") from error


def _fill(job: _Job, chunk: range) -> list[tuple[int, str]]:
    """Decode the samples of ``chunk`` into their rows; returns (index, reason) of those that failed."""
    failures = []
    with job.file.open("r+b") as handle:
        for index in chunk:
            try:
                _write_row(job, handle, index)
            except (UnreadableImageError, OSError) as error:
                if isinstance(error, OSError) and error.errno in DISK_FULL:
                    raise
                failures.append((index, str(error)))
    return failures


def _write_row(job: _Job, handle: BinaryIO, index: int) -> None:
    data = job.raw(index)
    if hashlib.sha256(data).digest() != job.expected[index].tobytes():
        raise UnreadableImageError("its content is not the one that was hashed")
    image = open_image(data) if job.decode is None else Image.fromarray(job.decode(data))
    handle.seek(job.offset + int(job.row_of[index]) * job.side**2 * 3)
    # Plain writes instead of a shared memory map: the process stays small whatever the size of the dataset.
    handle.write(to_square(image, job.side).tobytes())


def _open(folder: Path, count: int, side: int) -> Pixels | None:
    if not (folder / "meta.json").is_file():
        return None
    return map_array(folder / "pixels.npy", (count, side, side, 3), np.uint8)
