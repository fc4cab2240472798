"""Making what is stored: images through the frozen part of a network, chunk by chunk, on all cores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcdbench.core.arrays import IntArray, Pixels
from gcdbench.core.work import available_cores
from gcdbench.models.backbone import Backbone
from gcdbench.views.chunks import building_threads, chunk_size, cut_chunks
from gcdbench.views.context import ViewContext
from gcdbench.views.threads import run_chunks


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
