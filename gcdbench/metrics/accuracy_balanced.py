"""Balanced accuracy: every class counts once, however many images it has."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from gcdbench.metrics.accuracy import flags
from gcdbench.metrics.assignment import contingency, correct_per_class, match
from gcdbench.metrics.score import all_old_new

SCORES = all_old_new("balanced_", ", balanced")


def accuracy_balanced(
    y_true: ArrayLike, cluster: ArrayLike, is_old: ArrayLike, anchored: bool = False
) -> dict[str, float]:
    """Mean of the per-class accuracies under the v2 map, over the classes that occur: each class counts once.

    >>> accuracy_balanced([0, 0, 0, 1], [5, 5, 5, 5], is_old=[True, False])
    {'balanced_all': 50.0, 'balanced_old': 100.0, 'balanced_new': 0.0}
    """
    old = flags(is_old)
    counts = contingency(y_true, cluster, old.size).counts
    size = counts.sum(1)
    present = size > 0
    per_class = 100.0 * correct_per_class(counts, match(counts)) / np.maximum(size, 1)
    parts = {"balanced_all": present, "balanced_old": present & old, "balanced_new": present & ~old}
    return {name: float(per_class[part].mean()) for name, part in parts.items() if part.any()}
