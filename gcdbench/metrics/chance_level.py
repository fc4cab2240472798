"""The level that guessing reaches under the Hungarian map."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from gcdbench.metrics.accuracy import flags, shares
from gcdbench.metrics.assignment import contingency, correct_per_class, match
from gcdbench.metrics.score import percent

CHANCE_DRAWS = 20
"""Random tables behind the chance level; its standard error is then below half a point for N >= 200."""

SCORES = (
    percent("chance_all", "chance", direction="none"),
    percent("chance_old", "chance, Old", direction="none"),
    percent("chance_new", "chance, New", direction="none"),
)


def chance_level(y_true: ArrayLike, cluster: ArrayLike, is_old: ArrayLike, anchored: bool = False) -> dict[str, float]:
    """v2 accuracy expected when the found clusters are shuffled over the samples (``chance_all``, ``_old``, ``_new``).

    The Hungarian map finds matches in noise, so this is well above 1/K for small N.
    Shuffling keeps class and cluster sizes, hence only their margins matter: tables are drawn directly
    (multivariate hypergeometric, row by row) at a cost that does not grow with N. Deterministic.

    >>> chance_level([0, 0, 1, 1], [5, 5, 5, 5], is_old=[True, False])["chance_all"]  # nothing to shuffle
    50.0
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
