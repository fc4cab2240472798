"""Scores that look at the partition only (NMI, ARI, number of clusters) and the level that guessing reaches."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gcdbench.metrics.accuracy import flags, shares
from gcdbench.metrics.assignment import contingency, correct_per_class, match

CHANCE_DRAWS = 20
"""Random tables behind the chance level; its standard error is then below half a point for N >= 200."""


def _entropy(sizes: NDArray[np.int64]) -> float:
    share = np.sort(sizes[sizes > 0]) / sizes.sum()  # sorted: the sum must not depend on the clusters' names
    return float(-(share * np.log(share)).sum())


def nmi(y_true: ArrayLike, cluster: ArrayLike, is_old: ArrayLike, anchored: bool = False) -> dict[str, float]:
    """Normalised mutual information in percent, normalised by the mean of both entropies.

    Two partitions of one block each agree completely: 100.
    """
    counts = contingency(y_true, cluster, flags(is_old).size).counts
    h_class, h_cluster = _entropy(counts.sum(1)), _entropy(counts.sum(0))
    if h_class + h_cluster == 0.0:
        return {"nmi": 100.0}
    information = h_class + h_cluster - _entropy(counts.ravel())
    return {"nmi": 100.0 * max(0.0, information) / ((h_class + h_cluster) / 2)}


def ari(y_true: ArrayLike, cluster: ArrayLike, is_old: ArrayLike, anchored: bool = False) -> dict[str, float]:
    """Adjusted Rand index in percent (may be negative), from exact pair counts."""
    counts = contingency(y_true, cluster, flags(is_old).size).counts

    def pairs(sizes: NDArray[np.int64]) -> int:
        return int((sizes * (sizes - 1) // 2).sum())

    together, by_class, by_cluster = pairs(counts), pairs(counts.sum(1)), pairs(counts.sum(0))
    n = int(counts.sum())
    possible = n * (n - 1) // 2  # Python integers from here on: products of pair counts overflow 64 bits
    denominator = possible * (by_class + by_cluster) - 2 * by_class * by_cluster
    if denominator == 0:
        return {"ari": 100.0}
    return {"ari": 100.0 * (2 * (possible * together - by_class * by_cluster) / denominator)}


def cluster_count(y_true: ArrayLike, cluster: ArrayLike, is_old: ArrayLike, anchored: bool = False) -> dict[str, float]:
    """``k_used``: clusters that hold at least one sample; ``k_error``: how many more (+) or fewer (−) than classes."""
    old = flags(is_old)
    used = int((contingency(y_true, cluster, old.size).counts.sum(0) > 0).sum())
    return {"k_used": float(used), "k_error": float(used - old.size)}


def chance_level(y_true: ArrayLike, cluster: ArrayLike, is_old: ArrayLike, anchored: bool = False) -> dict[str, float]:
    """v2 accuracy expected when the found clusters are shuffled over the samples (``chance_all``, ``_old``, ``_new``).

    The Hungarian map finds matches in noise, so that this lies well above 1/K for small N.
    Shuffling keeps class and cluster sizes, hence only their margins matter: tables are drawn directly
    (multivariate hypergeometric, row by row) at a cost that does not grow with N. Deterministic.
    """
    old = flags(is_old)
    counts = contingency(y_true, cluster, old.size).counts
    size = counts.sum(1)
    columns = np.sort(counts.sum(0))  # the order of clusters must not matter
    columns = columns[columns > 0]
    rng = np.random.default_rng(0)
    correct = np.zeros(old.size, dtype=np.int64)
    for _ in range(CHANCE_DRAWS):
        left, table = columns.copy(), np.zeros((old.size, columns.size), dtype=np.int64)
        for row, n in enumerate(size):
            table[row] = rng.multivariate_hypergeometric(left, n, method="marginals")
            left -= table[row]
        correct += correct_per_class(table, match(table))
    return shares(correct, size * CHANCE_DRAWS, old, "chance_")
