"""A dataset as its factory is asked for it and as it answers, before any split. No torch here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from gcdbench.core.arrays import IntArray, Pixels
from gcdbench.core.errors import DataError

if TYPE_CHECKING:
    from gcdbench.datasets.card import DatasetCard


UNKNOWN = -1
"""The label of an image whose class is not known."""


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
class Remark:
    """What a user should know about how a dataset was read: what was understood, left out or not stated."""

    kind: str
    message: str
    level: Literal["note", "warning"] = "note"


@dataclass(frozen=True, kw_only=True)
class DatasetSource:
    """A dataset as it is on the disk (or is made by code), before any split.

    keys: one stable name per sample, for people (a relative path); never shown to a method.
    labels: (N,) index into ``card.classes``; :data:`UNKNOWN` for images whose class nobody has told.
    partition: (N,) ``"train"`` or ``"test"``; a dataset without a test part is all ``"train"``.
    groups: (N,) patient or lesion names that a split must keep together, or None.
    raw: ``raw(i)`` gives the bytes of sample i as stored: an encoded image file, or, where
        ``decode`` is given, whatever that function understands. Must be picklable (it runs in worker processes).
    decode: ``decode(bytes) -> (H, W, 3) uint8``; None means "an image file", decoded by Pillow. Anything but a plain
        function of a module needs an attribute ``key``, a string that differs whenever it decodes differently.
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
    remarks: tuple[Remark, ...] = ()
    """What the user is told when the dataset is opened, and what an audit reports with the rest."""
    accepted_issues: tuple[str, ...] = ()
    """Faults that the user chose to live with by an option of the dataset; recorded with every run."""

    def __post_init__(self) -> None:
        other = [] if self.partition is None else sorted(set(np.unique(self.partition).tolist()) - {"train", "test"})
        if other:
            raise DataError(
                f"The dataset '{self.card.name}' puts images into the part '{other[0]}'; parts are 'train' and 'test'."
            )

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def class_counts(self) -> list[int]:
        """Images of each class; those of unknown class count nowhere."""
        known = self.labels[self.labels >= 0]
        return [int(count) for count in np.bincount(known, minlength=len(self.card.classes))]
