"""Every installed metric on predictions of your own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcdbench.core.errors import ConfigError
from gcdbench.plugins.manager import get_manager

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def score(y_true: ArrayLike, cluster: ArrayLike, is_old: ArrayLike, *, anchored: bool = False) -> dict[str, float]:
    """Every installed metric on predictions of your own.

    y_true, cluster: (N,) classes from 0 and clusters; is_old: (C,) one flag per class; anchored: cluster c is the c-th
    old class, for as many as there are old classes.

    >>> found = score([0, 0, 1, 1], [1, 1, 0, 0], [True, False])
    >>> found["all"], found["old"], found["new"]
    (100.0, 100.0, 100.0)
    """
    import numpy as np

    from gcdbench.runs.evaluate import score_set
    from gcdbench.runs.predictions import ScoredSet

    truth, found = np.asarray(y_true, dtype=np.int64), np.asarray(cluster, dtype=np.int64)
    if truth.ndim != 1 or truth.shape != found.shape or not len(truth):
        raise ConfigError(f"y_true and cluster must be lists of one length, not {truth.shape} and {found.shape}.")
    positions = np.arange(len(truth), dtype=np.int64)
    scored = ScoredSet(
        ids=positions,
        cluster=found,
        y_true=truth,
        group=positions,
        is_old=np.asarray(is_old, dtype=np.bool_),
        anchored=anchored,
        k_hat=int(found.max()) + 1,
    )
    return score_set(scored, get_manager())[0]
