"""Groups of equal and of nearly equal images."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from gcdbench.core.arrays import IntArray
from gcdbench.datasets.integrity.blocking import members_of

NEAR_BITS = 4
"""Two perceptual hashes (128 bits) that differ in at most this many bits count as nearly equal."""

_BANDS = 8


def exact_groups(digests: NDArray[np.uint8]) -> list[IntArray]:
    """Positions of the images of each content that occurs more than once. digests: (N, 32)."""
    _, group, size = np.unique(digests, axis=0, return_inverse=True, return_counts=True)
    return members_of(group.reshape(-1), np.flatnonzero(size > 1))


def near_groups(hashes: NDArray[np.uint64], bits: int = NEAR_BITS) -> list[IntArray]:
    """Positions of images that are chained by pairs of hashes differing in at most ``bits`` bits. hashes: (N, 2).

    Equal hashes are merged first; then only hashes that agree in one of eight bands of 16 bits are compared,
    which misses none: seven differing bits cannot touch all eight bands.
    """
    if bits >= _BANDS:
        raise ValueError(f"at most {_BANDS - 1} bits can be searched with {_BANDS} bands")
    if len(hashes) == 0:
        return []
    unique, group = np.unique(hashes, axis=0, return_inverse=True)
    group = group.reshape(-1)
    left, right = near_pairs(unique, bits)
    links = coo_array((np.ones(len(left), dtype=np.int8), (left, right)), shape=(len(unique), len(unique)))
    _, label = connected_components(links, directed=False)
    component = np.asarray(label, dtype=np.int64)[group]
    return members_of(component, np.flatnonzero(np.bincount(component) > 1))


def near_pairs(unique: NDArray[np.uint64], bits: int) -> tuple[IntArray, IntArray]:
    """All pairs of rows of ``unique`` (M, 2) whose Hamming distance is at most ``bits``."""
    pairs = [np.empty((0, 2), dtype=np.int64)]
    bands = np.ascontiguousarray(unique).view(np.uint16).reshape(len(unique), _BANDS)
    for band in bands.T:
        order = np.argsort(band, kind="stable")
        ranked = band[order]
        first = np.arange(len(order) - 1)
        step = 1
        # Compare each entry with its first, second, ... neighbour of the same band value, all entries at once.
        while True:
            first = first[first + step < len(order)]
            first = first[ranked[first] == ranked[first + step]]
            if len(first) == 0:
                break
            a, b = order[first], order[first + step]
            close = hamming(unique[a], unique[b]) <= bits
            pairs.append(np.stack([np.minimum(a, b)[close], np.maximum(a, b)[close]], axis=1))
            step += 1
    found = np.unique(np.concatenate(pairs), axis=0)
    return found[:, 0], found[:, 1]


def hamming(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> IntArray:
    """(n,) number of differing bits of the rows of two (n, 2) arrays."""
    counts: IntArray = _BIT_COUNT[np.ascontiguousarray(a ^ b).view(np.uint16)].sum(axis=1, dtype=np.int64)
    return counts


_BIT_COUNT = np.array([number.bit_count() for number in range(2**16)], dtype=np.uint8)
