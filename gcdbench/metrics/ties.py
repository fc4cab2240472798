"""Whether other maps are as good as the one behind the headline, and what Old and New are under those."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from gcdbench.metrics.accuracy import flags
from gcdbench.metrics.assignment import IntArray, best_pairs, contingency
from gcdbench.metrics.score import Score, percent

EXACT = 2**53
"""Whole numbers up to this one are exact in the solver's floating point."""

SCORES = (
    Score(key="ties", meaning="1 where another map is as good", decimals=0, bounds=(0, 1)),
    percent("old_low", "Old, lowest of the best maps", direction="none"),
    percent("old_high", "Old, highest of the best maps", direction="none"),
    percent("new_low", "New, lowest of the best maps", direction="none"),
    percent("new_high", "New, highest of the best maps", direction="none"),
)

Pairs = tuple[IntArray, IntArray]
"""Classes of a one-to-one map and the cluster of each."""


def ties(y_true: ArrayLike, cluster: ArrayLike, is_old: ArrayLike, anchored: bool = False) -> dict[str, float]:
    """``ties`` is 1 where another one-to-one map has as many samples right, but not the same ones, else 0.

    All is the same under every best map, Old and New need not be. With n(t, j) samples of class t in cluster j, let

        A* = { A one-to-one : Σ_{(t, j) ∈ A} n(t, j) is largest },
        old_low, old_high = 100 / #{samples of old classes} · min, max_{A ∈ A*} Σ_{(t, j) ∈ A, t old} n(t, j),

    and likewise ``new_low``, ``new_high``. Empty where this cannot be decided exactly (see :func:`best_map`).

    >>> found = ties([0, 0, 0, 0, 1, 1, 1, 1], [5, 5, 5, 2, 5, 5, 5, 2], is_old=[True, False])  # whose is cluster 5?
    >>> found["ties"], found["old_low"], found["old_high"], found["new_low"], found["new_high"]
    (1.0, 25.0, 75.0, 25.0, 75.0)
    >>> ties([0, 0, 1], [5, 5, 2], is_old=[True, False])["ties"]
    0.0
    """
    old = flags(is_old)
    counts = contingency(y_true, cluster, old.size).counts
    counts = counts[:, counts.any(axis=0)]
    of_old = np.where(old[:, None], counts, 0)
    most_old, least_old = best_map(counts, of_old), best_map(counts, -of_old)
    if most_old is None or least_old is None:
        return {}
    # A rival that is as good, with as few as possible of the pairs that make samples right in the first map.
    right_pairs = np.zeros_like(counts)
    right_pairs[most_old] = counts[most_old] > 0
    rival = best_map(counts, -right_pairs)
    if rival is None:
        return {}
    scores = {"ties": float(right_pairs[rival].sum() < right_pairs.sum())}
    right, high, low = int(counts[most_old].sum()), int(of_old[most_old].sum()), int(of_old[least_old].sum())
    for name, size, least, most in (
        ("old", int(counts[old].sum()), low, high),
        ("new", int(counts[~old].sum()), right - high, right - low),
    ):
        if size:
            scores |= {f"{name}_low": 100.0 * least / size, f"{name}_high": 100.0 * most / size}
    return scores


def best_map(counts: IntArray, second: IntArray) -> Pairs | None:
    """Of all one-to-one maps with the largest sum of ``counts`` (C, K), one with the largest sum of ``second`` (C, K).

    One assignment with the whole weights M · counts + second, where M is larger than two sums of ``second`` can be
    apart. None where sums of these weights would no longer be exact, which takes tens of millions of samples:
    then nothing is returned, rather than something nearly right.
    """
    # A class without a cluster adds nothing, so the sum of a row is between 0 and its entries.
    apart = int((second.max(axis=1).clip(min=0) - second.min(axis=1).clip(max=0)).sum()) + 1
    if 2 * min(counts.shape) * (apart * int(counts.max()) + int(np.abs(second).max())) >= EXACT:
        return None
    return best_pairs(apart * counts + second)
