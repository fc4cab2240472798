"""CIFAR-10 and CIFAR-100 in their binary editions: files of records, one or two label bytes and the three planes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from gcdbench.core.arrays import IntArray, Pixels
from gcdbench.core.errors import DataError
from gcdbench.datasets.card import load_card
from gcdbench.datasets.roots import find_place
from gcdbench.datasets.source import DatasetRequest, DatasetSource
from gcdbench.datasets.sources.folder import missing
from gcdbench.datasets.sources.options import refuse_unknown_options
from gcdbench.datasets.sources.walk import file_stamp

SIDE = 32
PIXEL_BYTES = 3 * SIDE**2


@dataclass(frozen=True, kw_only=True)
class Edition:
    """How one of the two sets is stored: files of each part, and the label bytes, of which the last one counts."""

    train: tuple[str, ...]
    test: tuple[str, ...]
    label_bytes: int


EDITIONS = {
    "cifar10": Edition(
        train=tuple(f"data_batch_{number}.bin" for number in range(1, 6)), test=("test_batch.bin",), label_bytes=1
    ),
    "cifar100": Edition(train=("train.bin",), test=("test.bin",), label_bytes=2),
}


@dataclass(frozen=True, kw_only=True)
class RecordReader:
    """Reads the pixels of a sample, without its label, so that equal images have equal bytes. Picklable.

    member: (N,) which file a sample is in; row: (N,) where in it; size: bytes of all files together.
    """

    files: tuple[str, ...]
    label_bytes: int
    member: IntArray
    row: IntArray
    size: int

    def __call__(self, index: int) -> bytes:
        records = _records(self.files[self.member[index]], self.label_bytes)
        return records[self.row[index], self.label_bytes :].tobytes()


def decode_planes(data: bytes) -> Pixels:
    """(32, 32, 3) uint8 from the red, green and blue planes of a record."""
    planes = np.frombuffer(data, dtype=np.uint8).reshape(3, SIDE, SIDE)
    return np.ascontiguousarray(planes.transpose(1, 2, 0))


def make_cifar(request: DatasetRequest) -> DatasetSource:
    """The folder that the archive unpacks to. Training batches are the pool, the test batch is the test part."""
    refuse_unknown_options(request)
    card, edition = load_card(request.name), EDITIONS[request.name]
    root = find_place(request.roots, card.places)
    if root is None:
        raise missing(card, request)
    parts = [(root / name, "train") for name in edition.train] + [(root / name, "test") for name in edition.test]
    labels = [_labels(file, edition.label_bytes, len(card.classes)) for file, _ in parts]
    sizes = [len(found) for found in labels]
    return DatasetSource(
        card=card,
        keys=tuple(
            f"{file.stem}/{row:05d}" for (file, _), size in zip(parts, sizes, strict=True) for row in range(size)
        ),
        labels=np.concatenate(labels),
        raw=RecordReader(
            files=tuple(str(file) for file, _ in parts),
            label_bytes=edition.label_bytes,
            member=np.repeat(np.arange(len(parts)), sizes),
            row=np.concatenate([np.arange(size) for size in sizes]),
            size=sum(file.stat().st_size for file, _ in parts),
        ),
        decode=decode_planes,
        partition=np.repeat([part for _, part in parts], sizes),
        location=str(root),
        fingerprint="\n".join(file_stamp(file) for file, _ in parts),
    )


def _labels(file: Path, label_bytes: int, classes: int) -> IntArray:
    """Labels of a file; one that is cut off, or is not what it is called, is refused."""
    if not file.is_file():
        raise DataError(f"{file} is missing.", hint="Unpack the whole archive; all of its .bin files are needed.")
    length = label_bytes + PIXEL_BYTES
    size = file.stat().st_size
    if size == 0 or size % length:
        raise DataError(
            f"{file} has {size:,} bytes, which is not a whole number of records of {length:,} bytes.",
            hint="It is cut off, or not of the binary edition: fetch it again.",
        )
    labels = _records(str(file), label_bytes)[:, label_bytes - 1].astype(np.int64)
    if labels.max() >= classes:
        raise DataError(
            f"{file} has the label {labels.max()}, but there are the classes 0 to {classes - 1}.",
            hint="It may be the file of another set: fetch it again.",
        )
    return labels


@lru_cache(maxsize=8)
def _mapped(file: str, length: int, stamp: str) -> Pixels:
    return np.memmap(file, dtype=np.uint8, mode="r").reshape(-1, length)


def _records(file: str, label_bytes: int) -> Pixels:
    """(N, label bytes + 3072) uint8, memory-mapped; mapped again when the file changes."""
    return _mapped(file, label_bytes + PIXEL_BYTES, file_stamp(Path(file)))
