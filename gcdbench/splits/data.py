"""What a method learns from: labelled and unlabelled images, and no hidden label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gcdbench.core.arrays import IntArray
from gcdbench.images.image_set import ImageSet


def training_rows(partition: NDArray[np.str_] | None, for_test: NDArray[np.bool_]) -> IntArray | None:
    """Rows that may be trained on under any split of this dataset, ascending; None means all of them.

    partition: (N,) the dataset's own parts, if it has any; for_test: (N,) the images a split keeps for testing. A split
    that somebody else made may train on what the dataset calls its test part: these rows are added.
    """
    if partition is None:
        return None
    rows = np.flatnonzero((partition != "test") | ~for_test).astype(np.int64)
    return None if len(rows) == len(partition) else rows


@dataclass(frozen=True, kw_only=True)
class GCDData:
    """Everything a method is given to learn from. Hidden labels cannot be reached from here.

    labels: (n,) class of each labelled image, 0 .. k_old - 1, in the order of ``labelled.ids``.
    """

    labelled: ImageSet
    labels: IntArray
    unlabelled: ImageSet

    def train(self) -> tuple[ImageSet, IntArray]:
        """All training images ordered by id, with labels, −1 where unlabelled."""
        ids = np.concatenate([self.labelled.ids, self.unlabelled.ids])
        labels = np.concatenate([self.labels, np.full(len(self.unlabelled), -1, dtype=np.int64)])
        order = np.argsort(ids, kind="stable")
        return ImageSet(ids=ids[order], store=self.labelled.store), labels[order]
