"""Accuracy v1: old and new classes matched separately."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from gcdbench.metrics.accuracy import flags, shares
from gcdbench.metrics.assignment import contingency, correct_per_class, match
from gcdbench.metrics.score import all_old_new

SCORES = all_old_new("v1_", ", v1")


def accuracy_v1(y_true: ArrayLike, cluster: ArrayLike, is_old: ArrayLike, anchored: bool = False) -> dict[str, float]:
    """v1: old and new are matched separately, so one cluster may serve an old and a new class.

    Never below v2 in ``v1_all``; kept to compare with tables that were scored this way.

    >>> accuracy_v1([0, 0, 1, 1], [5, 5, 5, 2], is_old=[True, False])
    {'v1_all': 75.0, 'v1_old': 100.0, 'v1_new': 50.0}
    >>> accuracy_v1([0, 0, 1, 1], [5, 5, 5, 5], is_old=[True, False])  # one cluster for both
    {'v1_all': 100.0, 'v1_old': 100.0, 'v1_new': 100.0}
    """
    old = flags(is_old)
    counts = contingency(y_true, cluster, old.size).counts
    correct = np.zeros(old.size, dtype=np.int64)
    for part in (old, ~old):
        if part.any():
            correct[part] = correct_per_class(counts[part], match(counts[part]))
    return shares(correct, counts.sum(1), old, "v1_")
