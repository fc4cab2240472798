"""Making what is stored: images through the frozen part of a network, chunk by chunk, on all cores."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcdbench.core.arrays import IntArray, Pixels
from gcdbench.core.work import available_cores
from gcdbench.models.backbone import Backbone
from gcdbench.views.context import ViewContext
from gcdbench.views.threads import run_chunks

CHUNK_PIXELS = 64 * 128 * 128
"""Pixels that go through the network at once: enough to keep it busy, few enough for a laptop's memory."""

CHUNK_MEMORY = 170 * 2**20
"""Bytes that CHUNK_PIXELS hold in activations on their way through Lite0's prefix; ResNet-18's takes less."""

BUILDING_MEMORY = 2**30
"""Bytes for the activations of all building threads; the rest of a run then stays well below 2 GiB in all."""


def chunk_size(image_size: int) -> int:
    """Images that go through the network at once."""
    return max(CHUNK_PIXELS // image_size**2, 8) if image_size > 128 else 64


def cut_chunks(count: int, size: int) -> list[tuple[int, int]]:
    """(first, last) of chunks of ``size``; none of them is a single image, for which a library may compute otherwise.

    So the bits of an output do not depend on which images are stored with it.
    """
    edges = [*range(0, count, size), count]
    if len(edges) > 2 and edges[-1] - edges[-2] == 1:
        del edges[-2]
    return list(pairwise(edges)) if count else []


def building_threads(cores: int, image_size: int) -> int:
    """Threads that build at once: one per core, as far as their activations fit into memory, and at least one."""
    chunk = CHUNK_MEMORY * chunk_size(image_size) * image_size**2 // CHUNK_PIXELS
    return max(min(cores, BUILDING_MEMORY // chunk), 1)


def run_prefix(backbone: Backbone, images: Tensor) -> Tensor:
    """Prefix output (B, c, h, w) of standardised images, in chunks."""
    pieces = [images[first:last] for first, last in cut_chunks(len(images), chunk_size(images.shape[-1])) or [(0, 0)]]
    with torch.no_grad():
        return torch.cat([backbone.prefix(piece) for piece in pieces])


class Progress:
    """Tells a run's listener how much of some work is done."""

    def __init__(self, ctx: ViewContext, task: str) -> None:
        self._ctx = ctx
        self._task = task
        self._done = self._total = 0

    def begin(self, total: int) -> None:
        """So many images are to be made."""
        self._done, self._total = 0, total
        self.add(0)

    def add(self, count: int) -> None:
        """So many more are made."""
        self._done += count
        self._ctx.log({"type": "progress", "task": self._task, "done": self._done, "total": self._total})


def fill_rows(
    ctx: ViewContext,
    store: Pixels,
    ids: IntArray,
    array: NDArray[Any],
    compute: Callable[[Pixels, IntArray], NDArray[Any]],
    progress: Progress,
) -> None:
    """``array[i] = compute(pixels, ids)`` for the image ``ids[i]``, in chunks that several threads share."""

    def fill_chunk(first: int, last: int) -> int:
        chosen = ids[first:last]
        array[first:last] = compute(np.asarray(store[chosen]), chosen)
        return last - first

    threads = building_threads(available_cores(), ctx.image_size) if ctx.device == "cpu" else 1
    for count in run_chunks(fill_chunk, cut_chunks(len(ids), chunk_size(ctx.image_size)), threads=threads):
        progress.add(count)
