"""Scores of attention maps against lesion masks. Pure numpy."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

Maps = NDArray[np.float32]
BoolMaps = NDArray[np.bool_]

CHUNK = 256
"""Images scored at once."""


@dataclass(frozen=True, kw_only=True)
class Localisation:
    """In percent, means over ``n`` images with a lesion in view.

    pointing: how often the map's highest pixel lies on the lesion (ties count by their share).
    energy_inside: share of the map's sum that lies on the lesion, after the map's minimum is taken off.
    area: the lesion's share of the image: what a map without any information scores in both.
    """

    n: int
    pointing: float
    energy_inside: float
    area: float

    def as_dict(self) -> dict[str, float]:
        """For JSON."""
        return asdict(self)


def upsample(maps: Maps, size: int) -> Maps:
    """(N, h, w) -> (N, size, size), bilinear between cell centres, constant beyond the outermost ones."""
    rows, columns = _weights(maps.shape[1], size), _weights(maps.shape[2], size)
    fine: Maps = np.einsum("ih,nhw,jw->nij", rows, maps, columns, optimize=True).astype(np.float32)
    return fine


def _weights(cells: int, size: int) -> NDArray[np.float64]:
    """(size, cells): how much of each cell a pixel takes."""
    position = np.clip((np.arange(size) + 0.5) * cells / size - 0.5, 0, cells - 1)
    lower = np.minimum(np.floor(position).astype(np.int64), max(cells - 2, 0))
    fraction = position - lower
    weights = np.zeros((size, cells))
    weights[np.arange(size), lower] += 1 - fraction
    weights[np.arange(size), np.minimum(lower + 1, cells - 1)] += fraction
    return weights


def localise(maps: Maps, masks: BoolMaps) -> Localisation:
    """Score maps (N, h, w) against masks (N, S, S); images without a lesion in view are left out."""
    keep = np.flatnonzero(masks.any(axis=(1, 2)))
    if not len(keep):
        return Localisation(n=0, pointing=float("nan"), energy_inside=float("nan"), area=float("nan"))
    # In chunks: a map of the image's size takes 200 times the memory of the network's.
    parts = [keep[start : start + CHUNK] for start in range(0, len(keep), CHUNK)]
    shares = np.concatenate([_shares(maps[part], masks[part]) for part in parts], axis=1)
    pointing, inside, area = (float(100 * share.mean()) for share in shares)
    return Localisation(n=len(keep), pointing=pointing, energy_inside=inside, area=area)


def _shares(maps: Maps, masks: BoolMaps) -> NDArray[np.float64]:
    """(3, N): pointing, energy inside and area of each image, from 0 to 1."""
    fine = upsample(maps, masks.shape[1])
    energy = fine - fine.min(axis=(1, 2), keepdims=True)
    peak = energy.max(axis=(1, 2), keepdims=True)
    # Pixels around a cell's centre differ by rounding only: they are one peak.
    highest = energy >= peak * np.float32(1 - 1e-5)
    pointing = (highest & masks).sum(axis=(1, 2)) / highest.sum(axis=(1, 2))
    total = energy.sum(axis=(1, 2))
    area = masks.mean(axis=(1, 2))
    # A constant map has no energy left; it says nothing, which scores the area.
    inside = np.where(total > 0, (energy * masks).sum(axis=(1, 2)) / np.where(total > 0, total, 1), area)
    return np.stack([pointing, inside, area])
