"""How many clusters hold anything."""

from __future__ import annotations

from numpy.typing import ArrayLike

from gcdbench.metrics.accuracy import flags
from gcdbench.metrics.assignment import contingency
from gcdbench.metrics.score import Score

SCORES = (
    Score(key="k_used", title="clusters used", bounds=(1, None)),
    Score(key="k_error", title="clusters used − K"),
)


def cluster_count(y_true: ArrayLike, cluster: ArrayLike, is_old: ArrayLike, anchored: bool = False) -> dict[str, float]:
    """``k_used``: clusters that hold at least one sample; ``k_error``: how many more (+) or fewer (−) than classes.

    >>> cluster_count([0, 0, 1, 1], [5, 5, 5, 5], is_old=[True, False])
    {'k_used': 1.0, 'k_error': -1.0}
    """
    old = flags(is_old)
    used = int((contingency(y_true, cluster, old.size).counts.sum(0) > 0).sum())
    return {"k_used": float(used), "k_error": float(used - old.size)}
