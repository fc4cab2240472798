"""Which images and which classes a run confuses, from its stored predictions. Pure numpy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gcdbench.core.arrays import IntArray
from gcdbench.metrics.assignment import contingency, match
from gcdbench.runs.predictions import ScoredSet


@dataclass(frozen=True, kw_only=True)
class ClassPair:
    """An old and a new class, and how many images of each were taken for the other."""

    old: int
    new: int
    old_as_new: int
    new_as_old: int

    @property
    def total(self) -> int:
        """Confusions in both directions."""
        return self.old_as_new + self.new_as_old


def assigned_classes(scored: ScoredSet) -> IntArray:
    """(N,) the class each image was assigned, by the one Hungarian matching; −1 for a cluster mapped to no class."""
    table = contingency(scored.y_true, scored.cluster, len(scored.is_old))
    class_of = match(table.counts)
    return class_of[np.searchsorted(table.cluster_ids, scored.cluster)]


def most_confused_images(scored: ScoredSet, count: int) -> IntArray:
    """Positions of wrongly assigned images, the most confident first; fewer than ``count`` where fewer are wrong."""
    wrong = np.flatnonzero(assigned_classes(scored) != scored.y_true)
    return _by_confidence(scored.confidence, wrong)[:count]


def most_confused_pairs(scored: ScoredSet, count: int) -> list[ClassPair]:
    """Old/new class pairs by the number of confusions between them, most first; pairs without any are left out."""
    assigned = assigned_classes(scored)
    classes = len(scored.is_old)
    known = assigned >= 0
    matrix = np.zeros((classes, classes), dtype=np.int64)
    np.add.at(matrix, (scored.y_true[known], assigned[known]), 1)
    old, new = np.flatnonzero(scored.is_old), np.flatnonzero(~scored.is_old)
    pairs = [
        ClassPair(old=int(o), new=int(n), old_as_new=int(matrix[o, n]), new_as_old=int(matrix[n, o]))
        for o in old
        for n in new
    ]
    ranked = sorted(pairs, key=lambda pair: (-pair.total, pair.old, pair.new))
    return [pair for pair in ranked if pair.total][:count]


def pair_examples(scored: ScoredSet, pair: ClassPair, count: int) -> dict[str, IntArray]:
    """Positions of up to ``count`` images each: the old class, what was confused in either direction, the new class.

    "old" and "new" are images of the class that were assigned to it, the most confident first.
    """
    assigned = assigned_classes(scored)

    def pick(truth: int, answer: int) -> IntArray:
        found = np.flatnonzero((scored.y_true == truth) & (assigned == answer))
        return _by_confidence(scored.confidence, found)[:count]

    return {
        "old": pick(pair.old, pair.old),
        "old as new": pick(pair.old, pair.new),
        "new as old": pick(pair.new, pair.old),
        "new": pick(pair.new, pair.new),
    }


def old_and_new_examples(scored: ScoredSet, count: int) -> dict[str, IntArray]:
    """Positions of up to ``count`` images each: old and right, new and right, new and taken for old.

    Classes take turns, each with its most confident image first, so that no class fills a group.
    """
    assigned = assigned_classes(scored)
    old = scored.is_old[scored.y_true]
    right = assigned == scored.y_true
    taken_for_old = (assigned >= 0) & scored.is_old[assigned]
    masks = {"old": old & right, "new": ~old & right, "false-old": ~old & taken_for_old}
    chosen = {}
    for name, mask in masks.items():
        ranked = _by_confidence(scored.confidence, np.flatnonzero(mask))
        truth = scored.y_true[ranked]
        turn = np.array([(truth[:place] == truth[place]).sum() for place in range(len(ranked))], dtype=np.int64)
        chosen[name] = ranked[np.lexsort((truth, turn))][:count]
    return chosen


def _by_confidence(confidence: NDArray[np.float32] | None, positions: IntArray) -> IntArray:
    if confidence is None:
        return positions
    return positions[np.argsort(-confidence[positions].astype(np.float64), kind="stable")]
