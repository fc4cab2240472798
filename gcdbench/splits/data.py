"""What a method learns from: labelled and unlabelled images, and no hidden label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gcdbench.core.arrays import IntArray
from gcdbench.images.image_set import ImageSet


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
