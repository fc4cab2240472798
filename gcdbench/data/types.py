"""The types on the way from a dataset to a method. No torch here: listing and splitting need none.

Sample ids are rows of the image store, which orders images by the hash of their content.
They therefore say nothing about class, file name or role, and are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gcdbench.errors import DataError

if TYPE_CHECKING:
    from gcdbench.data.card import DatasetCard

IntArray = NDArray[np.int64]
Pixels = NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class DatasetRequest:
    """What a dataset factory is told: where to look, and how the dataset was named.

    ``argument`` is the part after the colon of ``folder:<path>``; ``options`` come from ``--dataset-set``.
    """

    name: str
    roots: tuple[Path, ...] = ()
    argument: str | None = None
    image_size: int | None = None
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class DatasetSource:
    """A dataset as it lies on the disk (or is made by code), before any split.

    keys: one stable name a sample, for people (a relative path); never shown to a method.
    labels: (N,) index into ``card.classes``.
    partition: (N,) ``"train"`` or ``"test"``; a dataset without a test part is all ``"train"``.
    groups: (N,) patient or lesion names that a split must keep together, or None.
    raw: ``raw(i)`` gives the bytes of sample i as stored: an encoded image file, or, where
        ``decode`` is given, whatever that function understands. Must be picklable (it runs in worker processes).
    decode: ``decode(bytes) -> (H, W, 3) uint8``; None means "an image file", decoded by Pillow. Anything but a plain
        function of a module needs an attribute ``key``, a text that differs whenever it decodes differently.
    mask: ``mask(i) -> (H, W) bool`` lesion mask, or None.
    location: where it was found, for messages.
    """

    card: DatasetCard
    keys: tuple[str, ...]
    labels: IntArray
    raw: Callable[[int], bytes]
    partition: NDArray[np.str_] | None = None
    groups: NDArray[np.str_] | None = None
    decode: Callable[[bytes], Pixels] | None = None
    mask: Callable[[int], NDArray[np.bool_] | None] | None = None
    location: str = ""
    fingerprint: str | None = None
    """A cheap token that changes whenever any content may have changed (sizes and times of the files)."""

    def __post_init__(self) -> None:
        other = [] if self.partition is None else sorted(set(np.unique(self.partition).tolist()) - {"train", "test"})
        if other:
            raise DataError(
                f"The dataset '{self.card.name}' puts images into the part '{other[0]}'; parts are 'train' and 'test'."
            )

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, kw_only=True)
class ImageView:
    """Images a method may look at: opaque ids and pixels, nothing else.

    ids: (N,) rows of ``store``; store: (M, S, S, 3) uint8, memory-mapped and read-only.
    """

    ids: IntArray
    store: Pixels

    def __len__(self) -> int:
        return len(self.ids)

    def pixels(self, positions: IntArray | slice | None = None) -> Pixels:
        """(n, S, S, 3) uint8 of the images at ``positions`` (positions within this view, not ids)."""
        chosen = self.ids if positions is None else self.ids[positions]
        return np.asarray(self.store[chosen])

    @property
    def size(self) -> int:
        """Side of the stored images in pixels (larger than the network's input: it is cropped)."""
        return int(self.store.shape[1])


@dataclass(frozen=True, kw_only=True)
class GCDData:
    """Everything a method is given to learn from. Hidden labels cannot be reached from here.

    labels: (n,) class of each labelled image, 0 .. k_old - 1, in the order of ``labelled.ids``.
    """

    labelled: ImageView
    labels: IntArray
    unlabelled: ImageView

    def train(self) -> tuple[ImageView, IntArray]:
        """All training images ordered by id, with labels, −1 where unlabelled."""
        ids = np.concatenate([self.labelled.ids, self.unlabelled.ids])
        labels = np.concatenate([self.labels, np.full(len(self.unlabelled), -1, dtype=np.int64)])
        order = np.argsort(ids, kind="stable")
        return ImageView(ids=ids[order], store=self.labelled.store), labels[order]


@dataclass(frozen=True, kw_only=True)
class TaskInfo:
    """What a method knows about the task before it sees data. ``k`` is None unless the protocol says K is known."""

    k_old: int
    k: int | None
    image_size: int
    extra: dict[str, Any] = field(default_factory=dict)
