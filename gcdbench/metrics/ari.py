"""Adjusted Rand index of classes and clusters."""

from __future__ import annotations

from numpy.typing import ArrayLike

from gcdbench.metrics.accuracy import flags
from gcdbench.metrics.assignment import IntArray, contingency
from gcdbench.metrics.score import percent

SCORES = (percent("ari", "ARI", least=-50.0),)


def ari(y_true: ArrayLike, cluster: ArrayLike, is_old: ArrayLike, anchored: bool = False) -> dict[str, float]:
    """Adjusted Rand index in percent (may be negative), from exact pair counts.

    >>> ari([0, 0, 1, 1], [5, 5, 2, 2], is_old=[True, False])
    {'ari': 100.0}
    """
    counts = contingency(y_true, cluster, flags(is_old).size).counts

    def pairs(sizes: IntArray) -> int:
        return int((sizes * (sizes - 1) // 2).sum())

    together, by_class, by_cluster = pairs(counts), pairs(counts.sum(1)), pairs(counts.sum(0))
    n = int(counts.sum())
    possible = n * (n - 1) // 2  # Python integers from here on: products of pair counts overflow 64 bits
    denominator = possible * (by_class + by_cluster) - 2 * by_class * by_cluster
    if denominator == 0:
        return {"ari": 100.0}
    return {"ari": 100.0 * (2 * (possible * together - by_class * by_cluster) / denominator)}
