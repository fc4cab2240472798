"""Normalised mutual information of classes and clusters."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from gcdbench.metrics.accuracy import flags
from gcdbench.metrics.assignment import IntArray, contingency
from gcdbench.metrics.score import percent

SCORES = (percent("nmi", "NMI"),)


def _entropy(sizes: IntArray) -> float:
    share = np.sort(sizes[sizes > 0]) / sizes.sum()  # sorted: the sum must not depend on the clusters' names
    return float(-(share * np.log(share)).sum())


def nmi(y_true: ArrayLike, cluster: ArrayLike, is_old: ArrayLike, anchored: bool = False) -> dict[str, float]:
    """Normalised mutual information in percent, normalised by the mean of both entropies.

    Two partitions of one block each agree completely: 100.

    >>> round(nmi([0, 0, 1, 1], [5, 5, 5, 2], is_old=[True, False])["nmi"], 1)
    34.4
    """
    counts = contingency(y_true, cluster, flags(is_old).size).counts
    h_class, h_cluster = _entropy(counts.sum(1)), _entropy(counts.sum(0))
    if h_class + h_cluster == 0.0:
        return {"nmi": 100.0}
    information = h_class + h_cluster - _entropy(counts.ravel())
    return {"nmi": 100.0 * max(0.0, information) / ((h_class + h_cluster) / 2)}
