"""Where the wrong images went: the four-term error decomposition under the v2 map."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from gcdbench.metrics.accuracy import flags
from gcdbench.metrics.assignment import BoolArray, IntArray, confusion_matrix
from gcdbench.metrics.error_terms import BY_MAP, TERMS

SCORES = BY_MAP


def four_terms(matrix: IntArray, is_old: BoolArray) -> tuple[float, float, float, float]:
    """Errors of a (C, C + 1) confusion matrix in the order of ``TERMS``, in percent of all samples.

    The last column holds clusters that stand for no class; they count as new.
    """
    wrong = matrix.copy()
    np.fill_diagonal(wrong[:, :-1], 0)
    taken_for_old = np.append(is_old, False)
    old_for_old, old_for_new, new_for_old, new_for_new = (
        100.0 * int(wrong[np.ix_(truth, taken)].sum()) / int(matrix.sum())
        for truth in (is_old, ~is_old)
        for taken in (taken_for_old, ~taken_for_old)
    )
    return old_for_old, old_for_new, new_for_old, new_for_new


def error_decomposition(
    y_true: ArrayLike, cluster: ArrayLike, is_old: ArrayLike, anchored: bool = False
) -> dict[str, float]:
    """Each wrong sample under the v2 map in one of four groups, in percent of all samples.

    ``true_old_confusion`` old taken for another old class, ``false_new`` old taken for new,
    ``false_old`` new taken for old (the bias towards old classes), ``true_new_confusion`` new for another new.
    A cluster mapped to no class counts as new. All + the four = 100.

    >>> error_decomposition([0, 0, 1, 1], [5, 5, 5, 2], is_old=[True, False])["false_old"]
    25.0
    """
    old = flags(is_old)
    return dict(zip(TERMS, four_terms(confusion_matrix(y_true, cluster, old.size), old), strict=True))
