"""Accuracy of anchored methods: cluster j is the j-th old class, only the other clusters are matched."""

from __future__ import annotations

from numpy.typing import ArrayLike

from gcdbench.metrics.accuracy import flags, shares
from gcdbench.metrics.assignment import contingency, correct_per_class, match_anchored
from gcdbench.metrics.score import percent

SCORES = (
    percent("anchored_all", "All, anchored"),
    percent("anchored_new", "New, anchored"),
    percent("plain_old", "plain Old", meaning="ordinary accuracy on old classes, which forgives no swap"),
)


def accuracy_anchored(
    y_true: ArrayLike, cluster: ArrayLike, is_old: ArrayLike, anchored: bool = False
) -> dict[str, float]:
    """Cluster j is held to be the j-th old class, j < K_old; only the other clusters are matched, with new classes.

    ``plain_old`` is ordinary accuracy on old classes: unlike v2 it does not forgive swapped old classes.
    Empty for a method whose first clusters are not tied to the old classes.

    >>> accuracy_anchored([0, 0, 1, 1], [0, 3, 3, 3], is_old=[True, False], anchored=True)
    {'anchored_all': 75.0, 'anchored_new': 100.0, 'plain_old': 50.0}
    """
    if not anchored:
        return {}
    old = flags(is_old)
    table = contingency(y_true, cluster, old.size)
    correct = correct_per_class(table.counts, match_anchored(table, old))
    scores = shares(correct, table.counts.sum(1), old, "anchored_")
    if "anchored_old" in scores:
        scores["plain_old"] = scores.pop("anchored_old")
    return scores
