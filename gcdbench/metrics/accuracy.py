"""The headline accuracy in percent, v2: one assignment over all of D_u, restricted to old and new classes afterwards.

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
from gcdbench.metrics.score import all_old_new

SCORES = all_old_new("", "")


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

    >>> accuracy([0, 0, 1, 1], [5, 5, 5, 2], is_old=[True, False])
    {'all': 75.0, 'old': 100.0, 'new': 50.0}
    """
    old = flags(is_old)
    counts = contingency(y_true, cluster, old.size).counts
    return shares(correct_per_class(counts, match(counts)), counts.sum(1), old)


def assert_identity(all_: float, old: float | None, new: float | None, w: float, tolerance: float = 1e-6) -> None:
    """Assert All = w·Old + (1 − w)·New, where a side without samples (weight 0) may be None."""
    expected = (w * old if old is not None else 0.0) + ((1.0 - w) * new if new is not None else 0.0)
    if abs(all_ - expected) > tolerance:
        raise AssertionError(f"All = {all_:.6f} but w*Old + (1-w)*New = {expected:.6f} (w = {w:.6f})")
