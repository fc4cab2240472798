"""Where the training engine gets its views: made afresh each step, or drawn from stored prefix outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcdbench.core.arrays import IntArray, Pixels
from gcdbench.models.backbone import Backbone
from gcdbench.views.augmentation import Augmentation, augment, centre_view
from gcdbench.views.building import run_prefix
from gcdbench.views.draws import random_words
from gcdbench.views.setting import ViewSetting


class ViewSource(Protocol):
    """Prefix outputs of views, by sample id."""

    def start_epoch(self, epoch: int) -> None:
        """Called before the views of an epoch are asked for."""

    def pair(self, ids: IntArray, step: int, seed: int) -> Tensor:
        """(2B, c, h, w) float32: two different views of each image, view 1 of all, then view 2 of all.

        A function of (seed, step, id), and of the epoch where stored views are refreshed.
        """

    def test(self, ids: IntArray) -> Tensor:
        """(B, c, h, w) float32: the test view of each image."""


class OnlineViews:
    """Views made afresh each step: the paper's setting."""

    def __init__(self, backbone: Backbone, store: Pixels, augmentation: Augmentation, size: int, device: str) -> None:
        self._backbone = backbone
        self._store = store
        self._augmentation = augmentation
        self._size = size
        self._device = device
        backbone.prefix.to(device)

    def start_epoch(self, epoch: int) -> None:
        """Nothing: every step makes its own."""

    def pair(self, ids: IntArray, step: int, seed: int) -> Tensor:
        """(2B, c, h, w) float32, made now."""
        both = np.concatenate([ids, ids])
        draw = np.repeat(np.array([2 * step, 2 * step + 1]), len(ids))
        images = augment(
            self._store[both],
            augmentation=self._augmentation,
            ids=both,
            draw=draw,
            seed=seed,
            size=self._size,
            mean=self._backbone.mean,
            std=self._backbone.std,
        )
        return run_prefix(self._backbone, images.to(self._device))

    def test(self, ids: IntArray) -> Tensor:
        """(B, c, h, w) float32, made now."""
        network = self._backbone
        images = centre_view(self._store[ids], size=self._size, mean=network.mean, std=network.std)
        return run_prefix(network, images.to(self._device))


class StoredViews:
    """Views drawn from stored ones, which are opened when the first is asked for: to predict, none is needed.

    open_window: ``open_window(first)`` gives the stored views ``first`` .. ``first + setting.count − 1``, each an array
    over training images; rows_of: from ids to rows of these arrays; decode: from drawn rows to (B, h, w, c) floats;
    outputs: (N, h, w, c) float16, the test views.
    """

    def __init__(
        self,
        setting: ViewSetting,
        *,
        open_window: Callable[[int], Sequence[NDArray[Any]]],
        rows_of: Callable[[IntArray], IntArray],
        decode: Callable[[NDArray[Any]], NDArray[Any]],
        outputs: NDArray[np.float16],
        device: str,
    ) -> None:
        self.setting = setting
        self.outputs = outputs
        self.window: Sequence[NDArray[Any]] = ()
        self._first = -1
        self._open_window = open_window
        self._rows_of = rows_of
        self._decode = decode
        self._device = device

    def start_epoch(self, epoch: int) -> None:
        """Open the views of this epoch; where they are refreshed, they move on by ``setting.fresh`` per epoch."""
        first = epoch * self.setting.fresh
        if first != self._first:
            self.window = ()  # what is no longer needed may be deleted before something new is made
            self.window = self._open_window(first)
            self._first = first

    def pair(self, ids: IntArray, step: int, seed: int) -> Tensor:
        """(2B, c, h, w) float32, two different stored views of each image."""
        return self.finish(self.read_pair(ids, step, seed))

    def test(self, ids: IntArray) -> Tensor:
        """(B, c, h, w) float32, stored."""
        return self.finish(self.read_test(ids))

    def read_pair(self, ids: IntArray, step: int, seed: int) -> NDArray[Any]:
        """(2B, h, w, c): what :meth:`finish` turns into the pair. Needs no torch: a thread may read ahead."""
        if not self.window:
            self.start_epoch(0)
        first, second = choose_views(ids, step=step, seed=seed, views=len(self.window))
        views, rows = np.concatenate([first, second]), np.tile(self._rows_of(ids), 2)
        drawn = np.empty((len(rows), *self.window[0].shape[1:]), dtype=self.window[0].dtype)
        for view in np.unique(views):
            chosen = np.flatnonzero(views == view)
            drawn[chosen] = np.take(self.window[view], rows[chosen], axis=0)
        return self._decode(drawn)

    def read_test(self, ids: IntArray) -> NDArray[Any]:
        """(B, h, w, c): what :meth:`finish` turns into the test views."""
        return np.asarray(np.take(self.outputs, ids, axis=0))

    def finish(self, read: NDArray[Any]) -> Tensor:
        """(B, c, h, w) float32 on the device. Stored channels-last: the tensor has the layout the tail wants."""
        return torch.from_numpy(read).to(self._device).to(torch.float32).permute(0, 3, 1, 2)


def choose_views(ids: IntArray, *, step: int, seed: int, views: int) -> tuple[IntArray, IntArray]:
    """Two different views, 0 .. views − 1, for each id at this step; every ordered pair is equally likely."""
    words = random_words(seed, ids, step)
    first = (words >> np.uint64(32)) % np.uint64(views)
    shift = (words & np.uint64(0xFFFFFFFF)) % np.uint64(views - 1)
    second = (first + np.uint64(1) + shift) % np.uint64(views)
    return first.astype(np.int64), second.astype(np.int64)
