"""Random fields that are the same to the last bit on every platform.

Numbers come from an integer hash of (sample, stream, position), so any subset of samples can be made in any
order and in any batch. Fields use only ``+ − × ÷ √``, comparisons and gathers, which IEEE 754 rounds
alike everywhere; ``sin``, ``exp`` and matrix products differ between processors and are avoided.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Field = NDArray[np.float32]
"""(n, S, S): one value per pixel."""

SEED = np.uint64(0x9E3779B97F4A7C15)
_SAMPLE = np.uint64(0xD1B54A32D192ED03)
_STREAM = np.uint64(0x8CB92BA72F3D8DD7)
_POSITION = np.uint64(0xABC98388FB8FAC03)


def uniform(index: NDArray[np.int64], stream: int, count: int) -> Field:
    """(n, count) numbers in [0, 1), one row for each entry of ``index`` (n,); ``stream`` names the purpose."""
    rows = index.astype(np.uint64)[:, None] * _SAMPLE
    positions = np.arange(1, count + 1, dtype=np.uint64) * _POSITION
    purpose = np.full(1, stream, dtype=np.uint64) * _STREAM  # an array: scalars warn when they wrap around
    key = rows + (SEED + purpose + positions)
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    key = key ^ (key >> np.uint64(31))
    return (key >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)


def between(values: Field, low: float, high: float) -> Field:
    """Move numbers from [0, 1) to [low, high)."""
    return np.float32(low) + values * np.float32(high - low)


def triangle(phase: Field) -> Field:
    """Triangle wave of period 1: 1 at whole numbers, 0 half-way between them."""
    wave = np.floor(phase)
    np.subtract(phase, wave, out=wave)
    wave *= np.float32(2.0)
    wave -= np.float32(1.0)
    return np.abs(wave, out=wave)


def smooth(values: Field) -> Field:
    """Cubic step from 0 to 1, flat outside."""
    clipped = np.clip(values, np.float32(0.0), np.float32(1.0))
    step = np.float32(3.0) - np.float32(2.0) * clipped
    step *= clipped
    step *= clipped
    return step


def value_noise(index: NDArray[np.int64], stream: int, size: int, cells: int) -> Field:
    """(n, size, size) smooth noise in [0, 1): random values on a grid of ``cells``, blended in between."""
    grid = uniform(index, stream, (cells + 1) * (cells + 1)).reshape(len(index), cells + 1, cells + 1)
    position = (np.arange(size, dtype=np.float32) + np.float32(0.5)) * np.float32(cells) / np.float32(size)
    lower = position.astype(np.int64)
    weight = smooth(position - lower.astype(np.float32))
    columns = grid[:, :, lower] + np.diff(grid, axis=2)[:, :, lower] * weight
    field = np.diff(columns, axis=1)[:, lower]
    field *= weight[:, None]
    field += columns[:, lower]
    return field


def direction(index: NDArray[np.int64], stream: int) -> tuple[Field, Field]:
    """Cosine and sine (n, 1, 1) of a random angle, without trigonometry."""
    point = between(uniform(index, stream, 2), -1.0, 1.0)
    length = np.sqrt(point[:, 0] * point[:, 0] + point[:, 1] * point[:, 1]) + np.float32(1e-6)
    return (point[:, 0] / length)[:, None, None], (point[:, 1] / length)[:, None, None]
