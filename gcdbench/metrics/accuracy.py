"""Clustering accuracies in percent. The headline is v2: one assignment over all of D_u, restricted afterwards.

A score that is not defined (Old without a single old sample) is left out of the result, never NaN.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from gcdbench.metrics.assignment import (
    BoolArray,
    IntArray,
    contingency,
    correct_per_class,
    match,
)


def flags(is_old: ArrayLike) -> BoolArray:
    """``is_old`` as a (C,) array of booleans."""
    array = np.asarray(is_old, dtype=bool)
    if array.ndim != 1 or array.size == 0:
        raise ValueError("is_old must hold one flag for each class")
    return array


def shares(correct: IntArray, size: IntArray, is_old: BoolArray, prefix: str = "") -> dict[str, float]:
    """All / Old / New in percent from (C,) correct and (C,) size of each class."""
    parts = {"all": np.ones_like(is_old), "old": is_old, "new": ~is_old}
    return {
        prefix + name: 100.0 * int(correct[part].sum()) / int(size[part].sum())
        for name, part in parts.items()
        if size[part].sum() > 0
    }


def old_share(y_true: ArrayLike, is_old: ArrayLike) -> float:
    """w: the share of samples that belong to old classes, in [0, 1]."""
    truth = np.asarray(y_true)
    if truth.size == 0:
        raise ValueError("y_true is empty: there is nothing to score")
    return float(flags(is_old)[truth].mean())


def accuracy(y_true: ArrayLike, cluster: ArrayLike, is_old: ArrayLike, anchored: bool = False) -> dict[str, float]:
    """v2, the headline: ``all``, ``old``, ``new`` under one Hungarian map fitted once on all samples.

    y_true (N,) classes, cluster (N,), is_old (C,). Renaming clusters changes nothing.
    """
    old = flags(is_old)
    counts = contingency(y_true, cluster, old.size).counts
    return shares(correct_per_class(counts, match(counts)), counts.sum(1), old)


def accuracy_v1(y_true: ArrayLike, cluster: ArrayLike, is_old: ArrayLike, anchored: bool = False) -> dict[str, float]:
    """v1: old and new are matched separately, so that one cluster may serve an old and a new class.

    Never below v2 in ``v1_all``; kept to compare with tables that were scored this way.
    """
    old = flags(is_old)
    counts = contingency(y_true, cluster, old.size).counts
    correct = np.zeros(old.size, dtype=np.int64)
    for part in (old, ~old):
        if part.any():
            correct[part] = correct_per_class(counts[part], match(counts[part]))
    return shares(correct, counts.sum(1), old, "v1_")


def accuracy_balanced(
    y_true: ArrayLike, cluster: ArrayLike, is_old: ArrayLike, anchored: bool = False
) -> dict[str, float]:
    """Mean of the per-class accuracies under the v2 map, over the classes that occur: each class counts once."""
    old = flags(is_old)
    counts = contingency(y_true, cluster, old.size).counts
    size = counts.sum(1)
    present = size > 0
    per_class = 100.0 * correct_per_class(counts, match(counts)) / np.maximum(size, 1)
    parts = {"balanced_all": present, "balanced_old": present & old, "balanced_new": present & ~old}
    return {name: float(per_class[part].mean()) for name, part in parts.items() if part.any()}


def accuracy_anchored(
    y_true: ArrayLike, cluster: ArrayLike, is_old: ArrayLike, anchored: bool = False
) -> dict[str, float]:
    """Cluster j is held to be the j-th old class, j < K_old; only the other clusters are matched, with new classes.

    ``plain_old`` is ordinary accuracy on old classes: unlike v2 it does not forgive swapped old classes.
    Empty for a method whose first clusters are not tied to the old classes.
    """
    if not anchored:
        return {}
    old = flags(is_old)
    table = contingency(y_true, cluster, old.size)
    counts, k_old = table.counts, int(old.sum())
    correct = np.zeros(old.size, dtype=np.int64)
    tied = table.cluster_ids < k_old
    tied_class = np.flatnonzero(old)[table.cluster_ids[tied]]
    correct[tied_class] = counts[tied_class, np.flatnonzero(tied)]
    rest = counts[np.ix_(~old, ~tied)]
    correct[~old] = correct_per_class(rest, match(rest)) if rest.size else 0
    scores = shares(correct, counts.sum(1), old, "anchored_")
    if "anchored_old" in scores:
        scores["plain_old"] = scores.pop("anchored_old")
    return scores


def assert_identity(all_: float, old: float | None, new: float | None, w: float, tolerance: float = 1e-6) -> None:
    """Assert All = w·Old + (1 − w)·New, where a side without samples (weight 0) may be None."""
    expected = (w * old if old is not None else 0.0) + ((1.0 - w) * new if new is not None else 0.0)
    if abs(all_ - expected) > tolerance:
        raise AssertionError(f"All = {all_:.6f} but w*Old + (1-w)*New = {expected:.6f} (w = {w:.6f})")
