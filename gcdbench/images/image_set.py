"""A set of images as a method sees it.

Sample ids are rows of the image store, which orders images by the hash of their content.
They therefore say nothing about class, file name or role, and are the same on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gcdbench.core.arrays import IntArray, Pixels


@dataclass(frozen=True, kw_only=True)
class ImageSet:
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
