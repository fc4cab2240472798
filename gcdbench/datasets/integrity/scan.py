"""One look at every image of a dataset: hash, format, size, range of values and perceptual hash. Nothing is refused."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gcdbench.core.arrays import Pixels
from gcdbench.core.work import Progress
from gcdbench.datasets.source import DatasetSource
from gcdbench.images.decoding import UnreadableImageError, open_image, to_rgb
from gcdbench.images.deep import DeepDecoder, is_dicom
from gcdbench.images.workers import map_chunks

HASH_WORDS = 2
"""A perceptual hash is two words of 64 bits: brightness steps to the right, and downwards."""

_PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True, kw_only=True)
class Scan:
    """What was seen of N images.

    digests: (N, 32) sha256; perceptual: (N, 2) uint64; width, height, frames: (N,); spread: (N,) largest
    difference of values within one channel; contrast: (N,) standard deviation of a small grey copy;
    modes: Pillow's mode of each image, with ";16" where the file is deeper than what Pillow gives, or "DICOM";
    unreadable: position -> reason.
    """

    digests: NDArray[np.uint8]
    perceptual: NDArray[np.uint64]
    width: NDArray[np.int64]
    height: NDArray[np.int64]
    frames: NDArray[np.int64]
    spread: NDArray[np.int64]
    contrast: NDArray[np.float64]
    modes: NDArray[np.str_]
    unreadable: dict[int, str] = field(default_factory=dict)

    @property
    def readable(self) -> NDArray[np.bool_]:
        """(N,) true where the image could be decoded."""
        flags = np.ones(len(self.width), dtype=np.bool_)
        flags[list(self.unreadable)] = False
        return flags


@dataclass(frozen=True, kw_only=True)
class _Looking:
    raw: Callable[[int], bytes]
    decode: Callable[[bytes], Pixels] | None


def scan_images(source: DatasetSource, *, workers: int, progress: Progress | None = None) -> Scan:
    """Decode every image once, in parallel; only a few numbers of each are kept."""
    looking = _Looking(raw=source.raw, decode=source.decode)
    parts = list(
        map_chunks(_scan_chunk, looking, len(source), workers=workers, stage="looking at images", progress=progress)
    )
    unreadable: dict[int, str] = {}
    for part in parts:
        unreadable |= part.unreadable
    names = ("digests", "perceptual", "width", "height", "frames", "spread", "contrast", "modes")
    return Scan(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names}, unreadable=unreadable
    )


def _scan_chunk(looking: _Looking, chunk: range) -> Scan:
    count = len(chunk)
    digests = np.zeros((count, 32), dtype=np.uint8)
    perceptual = np.zeros((count, HASH_WORDS), dtype=np.uint64)
    numbers = np.zeros((5, count), dtype=np.float64)
    modes = [""] * count
    unreadable: dict[int, str] = {}
    for position, index in enumerate(chunk):
        try:
            data = looking.raw(index)
            digests[position] = np.frombuffer(hashlib.sha256(data).digest(), dtype=np.uint8)
            image = open_image(data) if looking.decode is None else Image.fromarray(looking.decode(data))
            stored = image if not isinstance(looking.decode, DeepDecoder) or is_dicom(data) else open_image(data)
            modes[position] = "DICOM" if is_dicom(data) else _mode(stored, data)
            frames = _frames(stored)
            colour = to_rgb(image)
            small = np.asarray(colour.convert("L").resize((32, 32), Image.Resampling.BOX), dtype=np.float64)
            spread = int(np.ptp(np.array(colour.getextrema()), axis=1).max())
            numbers[:, position] = (image.width, image.height, frames, spread, small.std())
            perceptual[position] = perceptual_hash(colour)
        except UnreadableImageError as error:
            unreadable[index] = str(error)
        except OSError as error:
            unreadable[index] = error.strerror or str(error)
    width, height, frame_count, spread_values, contrast = numbers
    return Scan(
        digests=digests,
        perceptual=perceptual,
        width=width.astype(np.int64),
        height=height.astype(np.int64),
        frames=frame_count.astype(np.int64),
        spread=spread_values.astype(np.int64),
        contrast=contrast,
        modes=np.array(modes, dtype="<U12"),
        unreadable=unreadable,
    )


def perceptual_hash(image: Image.Image) -> NDArray[np.uint64]:
    """(2,) uint64: signs of the brightness steps on a grid of 8 x 8, rightwards and downwards.

    Small changes of size, brightness or compression leave nearly all of the 128 bits as they are.
    """
    grid = np.asarray(image.convert("L").resize((9, 9), Image.Resampling.BOX), dtype=np.int16)
    steps = np.stack([grid[:8, 1:] > grid[:8, :8], grid[1:, :8] > grid[:8, :8]])
    return np.packbits(steps.reshape(HASH_WORDS, 64), axis=1).view(">u8")[:, 0].astype(np.uint64)


def _mode(image: Image.Image, data: bytes) -> str:
    return image.mode + (";16" if _is_deep_png(data) and "16" not in image.mode else "")


def _frames(image: Image.Image) -> int:
    try:
        return int(getattr(image, "n_frames", 1))
    except (OSError, EOFError, ValueError, SyntaxError):
        return 1


def _is_deep_png(data: bytes) -> bool:
    # Pillow gives 16-bit colour as 8-bit silently; the depth is in the file's header.
    return data[:8] == _PNG and len(data) > 24 and data[24] == 16
