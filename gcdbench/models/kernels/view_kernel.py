"""The only kernel, called on numpy arrays, its work shared between torch's number of threads."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from gcdbench.core.arrays import IntArray, Pixels
from gcdbench.models.kernels.loader import load_kernels

Channels = tuple[float, float, float]


def make_views(
    pixels: Pixels,
    size: int,
    *,
    top: IntArray,
    left: IntArray,
    flip: NDArray[np.bool_],
    factors: NDArray[np.float32],
    order: IntArray,
    mean: Channels,
    std: Channels,
) -> Tensor | None:
    """Views (B, 3, size, size), channels-last in memory, of stored images (B, S, S, 3); None without kernels.

    top, left, flip: (B,) crop corner and mirror; factors: (B, 4) of the colour operations; order: (B, 4), −1 skips.
    """
    kernels = load_kernels()
    if kernels is None:
        return None
    count, side = pixels.shape[:2]
    shapes = {each.shape for each in (top, left, flip)} | {each.shape[:-1] for each in (factors, order)}
    if pixels.shape[1:] != (side, side, 3) or shapes != {(count,)} or not factors.shape[1] == order.shape[1] == 4:
        raise ValueError("views are made of square images, with parameters for each of them")
    if any(len(corner) and (corner.min() < 0 or corner.max() > side - size) for corner in (top, left)):
        raise ValueError("views are cut from inside the stored images")
    out = np.empty((count, size, size, 3), dtype=np.float32)
    colours = np.array([mean, std], dtype=np.float32)
    arrays = [
        _dense(array, kind)
        for array, kind in (
            (pixels, np.uint8),
            (top, np.int64),
            (left, np.int64),
            (flip, np.uint8),
            (factors, np.float32),
            (order, np.int64),
        )
    ]
    stored, *drawn = map(_pointer, arrays)
    sides = (ctypes.c_int64(side), ctypes.c_int64(size))
    colour = (_pointer(colours[0]), _pointer(colours[1]))
    share(kernels.make_views, count, stored, _pointer(out), *sides, *drawn, *colour)
    return torch.from_numpy(out).permute(0, 3, 1, 2)


def share(function: Callable[..., int], count: int, *arguments: object) -> None:
    """Call ``function(first, last, *arguments)`` until all of ``count`` is done, with torch's number of threads."""
    threads = min(torch.get_num_threads(), count)
    if threads <= 1:
        failed = function(ctypes.c_int64(0), ctypes.c_int64(count), *arguments)
    else:
        bounds = [count * i // threads for i in range(threads + 1)]
        calls = [
            _pool(threads).submit(function, ctypes.c_int64(first), ctypes.c_int64(last), *arguments)
            for first, last in pairwise(bounds)
        ]
        failed = max(call.result() for call in calls)
    if failed:
        raise MemoryError("a compiled kernel could not allocate its working memory")


def _dense(array: NDArray[np.generic], kind: DTypeLike) -> NDArray[np.generic]:
    """Contiguous, of that type; a copy only where it has to be."""
    dense: NDArray[np.generic] = np.ascontiguousarray(array, dtype=kind)
    return dense


def _pointer(array: NDArray[np.generic]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


@lru_cache(maxsize=1)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)


if hasattr(os, "register_at_fork"):
    # Threads do not survive a fork; a child that kept the pool would wait for them forever.
    os.register_at_fork(after_in_child=_pool.cache_clear)
