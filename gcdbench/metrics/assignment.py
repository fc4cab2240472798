"""Counting predictions against classes, and the one Hungarian assignment that every accuracy starts from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

NO_CLASS = -1
"""Class of a cluster that the assignment leaves over."""


@dataclass(frozen=True, kw_only=True)
class Contingency:
    """How often each class fell into each cluster.

    counts: (C, K); cluster_ids: (K,) the name of each column, ascending.
    """

    counts: IntArray
    cluster_ids: IntArray

    @property
    def total(self) -> int:
        """Number of samples."""
        return int(self.counts.sum())

    def rows(self, classes: BoolArray) -> Contingency:
        """The same table restricted to some classes (C,)."""
        return Contingency(counts=self.counts[classes], cluster_ids=self.cluster_ids)


def _as_ids(values: ArrayLike, what: str) -> IntArray:
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{what} must be one-dimensional, not of shape {array.shape}")
    if array.size == 0:
        raise ValueError(f"{what} is empty: there is nothing to score")
    if array.dtype.kind not in "iu":
        raise ValueError(f"{what} must hold integers, not {array.dtype}")
    ids: IntArray = array.astype(np.int64, copy=False)
    if ids.min() < 0:
        raise ValueError(f"{what} holds a negative id ({ids.min()})")
    return ids


def contingency(y_true: ArrayLike, cluster: ArrayLike, n_classes: int) -> Contingency:
    """Count class against cluster: (N,) and (N,) give a (C, K) table, in one pass and without a loop.

    Cluster ids may be sparse; classes and clusters need not be equally many, and a class may be absent.
    """
    truth, found = _as_ids(y_true, "y_true"), _as_ids(cluster, "cluster")
    if truth.shape != found.shape:
        raise ValueError(f"y_true has {truth.size} samples, cluster has {found.size}")
    if truth.max() >= n_classes:
        raise ValueError(f"y_true holds class {truth.max()}, but there are only {n_classes} classes")
    n_clusters = int(found.max()) + 1
    if n_clusters > max(truth.size, 65_536):  # ids like 10**9 must not allocate a table of that width
        cluster_ids, found = np.unique(found, return_inverse=True)
        n_clusters = cluster_ids.size
    else:
        cluster_ids = np.arange(n_clusters, dtype=np.int64)
    flat = truth * n_clusters
    flat += found
    counts = np.bincount(flat, minlength=n_classes * n_clusters).reshape(n_classes, n_clusters)
    return Contingency(counts=counts.astype(np.int64, copy=False), cluster_ids=cluster_ids)


def best_pairs(weights: IntArray) -> tuple[IntArray, IntArray]:
    """Rows and columns of the one-to-one pairs whose weights have the largest sum, by rows; weights (C, K)."""
    from scipy.optimize import linear_sum_assignment  # takes longer to import than a table to print

    rows, columns = linear_sum_assignment(weights, maximize=True)
    return rows.astype(np.int64, copy=False), columns.astype(np.int64, copy=False)


def match(counts: IntArray) -> IntArray:
    """The class of each cluster, (K,), −1 for a cluster left over: a one-to-one map with the most samples right.

    Several maps can be equally good. Empty columns are dropped and the others put into an order that depends
    on their content only before the solver sees them, so that renaming clusters can never change a score.
    """
    used = np.flatnonzero(counts.any(axis=0))
    order = used[np.lexsort(counts[::-1, used])]
    classes, columns = best_pairs(counts[:, order])
    class_of = np.full(counts.shape[1], NO_CLASS, dtype=np.int64)
    class_of[order[columns]] = classes
    return class_of


def match_anchored(table: Contingency, is_old: BoolArray) -> IntArray:
    """The class of each cluster, (K,), where cluster j is held to be the j-th old class for every j < K_old.

    Only the other clusters are matched, and with new classes only; −1 for those that are left over.
    """
    tied = table.cluster_ids < int(is_old.sum())
    class_of = np.full(table.cluster_ids.size, NO_CLASS, dtype=np.int64)
    class_of[tied] = np.flatnonzero(is_old)[table.cluster_ids[tied]]
    free, new = np.flatnonzero(~tied), np.flatnonzero(~is_old)
    if free.size and new.size:
        found = match(table.counts[np.ix_(new, free)])
        class_of[free] = np.where(found == NO_CLASS, NO_CLASS, new[found])
    return class_of


def correct_per_class(counts: IntArray, class_of: IntArray) -> IntArray:
    """(C,) samples of each class that are in the cluster mapped to it."""
    correct = np.zeros(counts.shape[0], dtype=np.int64)
    clusters = np.flatnonzero(class_of != NO_CLASS)
    correct[class_of[clusters]] = counts[class_of[clusters], clusters]
    return correct


def confusion(counts: IntArray, class_of: IntArray) -> IntArray:
    """(C, C + 1) true class against assigned class; the last column holds clusters mapped to no class."""
    n_classes = counts.shape[0]
    matrix = np.zeros((n_classes, n_classes + 1), dtype=np.int64)
    target = np.where(class_of == NO_CLASS, n_classes, class_of)
    np.add.at(matrix.T, target, counts.T)
    return matrix


def confusion_matrix(y_true: ArrayLike, cluster: ArrayLike, n_classes: int) -> IntArray:
    """(C, C + 1) confusion matrix after the Hungarian assignment over all samples."""
    counts = contingency(y_true, cluster, n_classes).counts
    return confusion(counts, match(counts))
