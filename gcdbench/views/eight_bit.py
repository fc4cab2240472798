"""Prefix outputs in 8 bits: half of the room of float16, an error of about 0.5 % of their spread.

Each channel of each view has a scale and an offset of its own. One scale for a whole bank would need a look at all
images first, and its error would be about twice as large. A view is one row of bytes, so that
drawing it is one read: c offsets, c scales (both float16), then h · w · c values, channels last.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LEVELS = 255
_LARGEST = np.float32(np.finfo(np.float16).max)


def record_bytes(height: int, width: int, channels: int) -> int:
    """Bytes of one view."""
    return (height * width + 4) * channels


def encode(hidden: NDArray[np.float32]) -> NDArray[np.uint8]:
    """(B, h, w, c) to (B, :func:`record_bytes`)."""
    values = np.clip(hidden, -_LARGEST, _LARGEST)
    # What is not a number has an offset that is not a number, which stays visible.
    with np.errstate(invalid="ignore", over="ignore"):
        low = _round_down(values.min(axis=(1, 2)))
        span = values.max(axis=(1, 2)) - low.astype(np.float32)
        scale = _round_up(span / np.float32(LEVELS))
        step = scale.astype(np.float32)[:, None, None]
        shifted = (values - low.astype(np.float32)[:, None, None]) / np.where(step > 0, step, 1)
        levels = np.clip(np.rint(shifted), 0, LEVELS).astype(np.uint8)
    count = len(hidden)
    return np.concatenate([low.view(np.uint8), scale.view(np.uint8), levels.reshape(count, -1)], axis=1)


def decode(records: NDArray[np.uint8], height: int, width: int, channels: int) -> NDArray[np.float32]:
    """The inverse of :func:`encode`, (B, h, w, c), up to half a step of each channel's scale.

    Plain multiplications and additions, one after the other: the same bits on every machine.
    """
    head = np.ascontiguousarray(records[:, : 4 * channels]).view(np.float16).astype(np.float32)
    low, scale = head[:, None, None, :channels], head[:, None, None, channels:]
    values = records[:, 4 * channels :].reshape(-1, height, width, channels).astype(np.float32)
    values *= scale
    values += low
    return values


def _round_down(values: NDArray[np.float32]) -> NDArray[np.float16]:
    nearest = values.astype(np.float16)
    return np.where(nearest > values, np.nextafter(nearest, np.float16(-np.inf)), nearest)


def _round_up(values: NDArray[np.float32]) -> NDArray[np.float16]:
    nearest = values.astype(np.float16)
    return np.where(nearest < values, np.nextafter(nearest, np.float16(np.inf)), nearest)
