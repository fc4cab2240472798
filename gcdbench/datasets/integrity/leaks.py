"""Test images that a method was shown with their label: they are byte for byte a labelled image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gcdbench.core.arrays import IntArray

_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class TestLeak:
    """Which test images are labelled ones as well; all arrays hold rows of the image store, or positions of a list.

    ids: (n,) test images, ascending; twins: (n,) the first labelled image of the same content.
    """

    __test__ = False  # the name is not that of a test

    ids: IntArray
    twins: IntArray

    def __len__(self) -> int:
        return len(self.ids)

    def leave_out(self, ids: IntArray) -> IntArray:
        """Those of ``ids`` that did not leak: what an inductive score without leaked images is made of."""
        return ids[~np.isin(ids, self.ids)]

    def pairs(self, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """(test image, labelled image) by name; ``names`` are in the order that the rows count."""
        return tuple((names[i], names[j]) for i, j in zip(self.ids.tolist(), self.twins.tolist(), strict=True))

    def sentence(self, names: Sequence[str]) -> str:
        """What a run says about it; "" where nothing leaked."""
        if not len(self):
            return ""
        listed = "; ".join(f"{test} is {labelled}" for test, labelled in self.pairs(names)[:_SHOWN])
        more = f" and {len(self) - _SHOWN} more" if len(self) > _SHOWN else ""
        return f"{len(self)} test images are byte for byte copies of labelled ones: {listed}{more}"


def find_leak(sha256: Sequence[str], roles: NDArray[np.str_]) -> TestLeak:
    """Compare the test images with the labelled ones.

    sha256: content hash of each image; roles: (N,) "labelled", "unlabelled", "test" or "" in the same order.
    """
    content = np.unique(np.asarray(sha256), return_inverse=True)[1]
    labelled = np.flatnonzero(roles == "labelled")
    first = np.full(len(roles) + 1, -1, dtype=np.int64)
    first[content[labelled[::-1]]] = labelled[::-1]  # reversed: of several equal ones the first is written last
    ids = np.flatnonzero((roles == "test") & (first[content] >= 0)).astype(np.int64)
    return TestLeak(ids=ids, twins=first[content[ids]])
