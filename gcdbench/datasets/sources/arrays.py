"""Datasets in ``.npz`` files of MedMNIST's shape: ``npz:<file>``, and the base of the MedMNIST sets."""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from gcdbench.core.arrays import IntArray, Pixels
from gcdbench.core.cached_arrays import Form, Recipe, open_cached
from gcdbench.core.errors import DataError
from gcdbench.core.places import cache_dir
from gcdbench.datasets.card import DatasetCard
from gcdbench.datasets.roots import resolve_argument
from gcdbench.datasets.source import DatasetRequest, DatasetSource
from gcdbench.datasets.sources.options import refuse_unknown_options
from gcdbench.datasets.sources.own import made_card, safe_name
from gcdbench.datasets.sources.walk import file_stamp

PARTS = ("train", "val", "test")


@dataclass(frozen=True, kw_only=True)
class ArrayReader:
    """Reads samples from image arrays in an ``.npz``, which are unpacked into the cache at the first read.

    members: names of the image arrays; member: (N,) which of them a sample is in; row: (N,) where in it.
    """

    file: str
    cache: str
    members: tuple[str, ...]
    member: IntArray
    row: IntArray

    def __call__(self, index: int) -> bytes:
        array = _unpacked(self.file, self.members[self.member[index]], self.cache)
        image = np.ascontiguousarray(array[self.row[index]])
        # The shape goes in front, so that equal bytes of another shape are another content.
        return "x".join(map(str, image.shape)).encode() + b"|" + image.tobytes()


def decode_array(data: bytes) -> Pixels:
    """(H, W, 3) uint8 from what :class:`ArrayReader` gives; grey images are repeated over the channels."""
    head, _, body = data.partition(b"|")
    image = np.frombuffer(body, dtype=np.uint8).reshape([int(side) for side in head.split(b"x")])
    return np.repeat(image[..., None], 3, axis=2) if image.ndim == 2 else image


def make_npz(request: DatasetRequest) -> DatasetSource:
    """``npz:<file>``: arrays ``train_images`` (N, H, W[, 3]) uint8 and ``train_labels`` (N[, 1]), likewise ``test_*``.

    A file with one part only (whichever it is called) is all training data. ``val_*`` is left out where there is more.
    """
    refuse_unknown_options(request)
    file = resolve_argument(request.argument, request.roots, "npz")
    shapes = array_headers(file)
    parts = [part for part in PARTS if f"{part}_images" in shapes]
    if not parts:
        raise DataError(
            f"{file} has no images: it holds {', '.join(sorted(shapes)) or 'nothing'}.",
            hint="Expected arrays named train_images and train_labels, as in MedMNIST's files.",
        )
    used = parts[:1] if len(parts) == 1 else [part for part in parts if part != "val"]
    card = made_card(f"npz-{safe_name(file.stem)}", str(file))
    return open_arrays(file, card, used, partition=dict.fromkeys(used, "train") if len(used) == 1 else None)


def open_arrays(
    file: Path, card: DatasetCard, parts: list[str], *, partition: dict[str, str] | None = None
) -> DatasetSource:
    """The dataset in the arrays of ``parts``. Without classes in the card they are the numbers found in the labels."""
    shapes = array_headers(file)
    for part in parts:
        check_labels(file, shapes, part)
    labels = {part: _labels(file, part) for part in parts}
    for part in parts:
        check_images(file, shapes, part, len(labels[part]))
    joined = np.concatenate([labels[part] for part in parts])
    if not card.classes:
        numbers, joined = np.unique(joined, return_inverse=True)
        card = replace(card, classes=tuple(map(str, numbers)))
    elif (highest := int(joined.max(initial=0))) >= len(card.classes):
        raise DataError(
            f"{file} has the label {highest}, but '{card.name}' has the classes 0 to {len(card.classes) - 1}."
        )
    sizes = [len(labels[part]) for part in parts]
    names = partition or {part: "test" if part == "test" else "train" for part in parts}
    return DatasetSource(
        card=card,
        keys=tuple(f"{part}/{row:06d}" for part, size in zip(parts, sizes, strict=True) for row in range(size)),
        labels=joined,
        raw=ArrayReader(
            file=str(file),
            cache=str(cache_dir()),
            members=tuple(f"{part}_images" for part in parts),
            member=np.repeat(np.arange(len(parts)), sizes),
            row=np.concatenate([np.arange(size) for size in sizes]),
        ),
        decode=decode_array,
        partition=np.repeat([names[part] for part in parts], sizes),
        location=str(file),
        fingerprint=file_stamp(file),
    )


def array_headers(file: Path) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Shape and type of every array in an ``.npz``, without unpacking any."""
    try:
        with zipfile.ZipFile(file) as archive:
            headers = {}
            for name in archive.namelist():
                if name.endswith(".npy"):
                    with archive.open(name) as member:
                        shape, _, dtype = _read_header(member)
                    headers[name.removesuffix(".npy")] = (shape, dtype)
            return headers
    except (zipfile.BadZipFile, ValueError, OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{file} is not a readable .npz file: {error}.", hint="It may be an incomplete download: fetch it again."
        ) from None


def _read_header(member: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether it is stored column by column, and type of the array that a stream holds."""
    if np.lib.format.read_magic(member) == (1, 0):
        return np.lib.format.read_array_header_1_0(member)
    return np.lib.format.read_array_header_2_0(member)


def check_images(file: Path, shapes: dict[str, tuple[tuple[int, ...], np.dtype[Any]]], part: str, count: int) -> None:
    """Refuse an image array of the wrong type, shape or length."""
    name = f"{part}_images"
    if name not in shapes:
        raise DataError(f"{file} has no array '{name}'; it holds {', '.join(sorted(shapes))}.")
    shape, dtype = shapes[name]
    if dtype != np.uint8:
        raise DataError(f"{file}: '{name}' has the type {dtype}, expected uint8.")
    if not (len(shape) == 3 or (len(shape) == 4 and shape[3] == 3)):
        raise DataError(f"{file}: '{name}' has the shape {shape}, expected (N, H, W) or (N, H, W, 3).")
    if shape[0] != count:
        raise DataError(f"{file}: '{name}' has {shape[0]} images, but '{part}_labels' has {count} labels.")


def check_labels(file: Path, shapes: dict[str, tuple[tuple[int, ...], np.dtype[Any]]], part: str) -> None:
    """Refuse a label array that is missing or is not one whole number per image."""
    name = f"{part}_labels"
    if name not in shapes:
        raise DataError(f"{file} has no array '{name}'; it holds {', '.join(sorted(shapes))}.")
    shape, dtype = shapes[name]
    if not np.issubdtype(dtype, np.integer) or not (len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)):
        raise DataError(
            f"{file}: '{name}' is {dtype} of shape {shape}, expected whole numbers of shape (N, 1).",
            hint="Sets with several labels per image cannot be used for category discovery.",
        )


def _labels(file: Path, part: str) -> IntArray:
    name = f"{part}_labels"
    try:
        with np.load(file, allow_pickle=False) as archive:
            labels = np.asarray(archive[name], dtype=np.int64).reshape(-1)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{file}: '{name}' cannot be read: {error}.") from None
    if labels.min(initial=0) < 0:
        raise DataError(f"{file}: '{name}' has negative labels.")
    return labels


@lru_cache(maxsize=8)
def _unpacked(file: str, member: str, cache: str) -> Pixels:
    """Memory map of one array. Compressed members cannot be mapped, so each is written to the cache once."""
    path = Path(file)
    shape, dtype = array_headers(path)[member]
    recipe = Recipe(
        kind="arrays",
        key=sha256(f"{file_stamp(path)}\n{member}".encode()).hexdigest()[:32],
        subject=f"The unpacked array {member} of {path.name}",
        title=f"{member} of {path.name}, unpacked",
        forms={"array": Form(shape=shape, dtype=dtype)},
        fill=lambda name, array: _unpack(path, member, array),
    )
    return open_cached(Path(cache), recipe)["array"]


def _unpack(path: Path, member: str, array: NDArray[Any]) -> None:
    """Copy a member of an archive into ``array``, a megabyte at a time."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open(f"{member}.npy") as packed:
            _, in_columns, dtype = _read_header(packed)
            # An array that was written column by column is its transpose, row by row.
            flat = array.T.flat if in_columns else array.reshape(-1)
            done = 0
            while block := packed.read(2**20 // dtype.itemsize * dtype.itemsize):
                values = np.frombuffer(block, dtype=dtype)
                flat[done : done + len(values)] = values
                done += len(values)
            if done != array.size:
                raise EOFError(f"{done} of {array.size} values")
    except (zipfile.BadZipFile, EOFError, ValueError, zlib.error) as error:
        raise DataError(f"{path}: '{member}' is damaged: {error}.", hint="Fetch the file again.") from None
