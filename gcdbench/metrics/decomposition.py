"""Where the wrong samples went: the four-term error decomposition."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from gcdbench.metrics.accuracy import flags
from gcdbench.metrics.assignment import confusion_matrix

TERMS = ("true_old_confusion", "false_new", "false_old", "true_new_confusion")


def error_decomposition(
    y_true: ArrayLike, cluster: ArrayLike, is_old: ArrayLike, anchored: bool = False
) -> dict[str, float]:
    """Each wrong sample under the v2 map in one of four groups, in percent of all samples.

    ``true_old_confusion`` old taken for another old class, ``false_new`` old taken for new,
    ``false_old`` new taken for old (the bias towards old classes), ``true_new_confusion`` new for another new.
    A cluster mapped to no class counts as new. All + the four = 100.
    """
    old = flags(is_old)
    matrix = confusion_matrix(y_true, cluster, old.size)
    wrong = matrix.copy()
    np.fill_diagonal(wrong[:, :-1], 0)
    taken_for_old = np.append(old, False)
    blocks = {
        "true_old_confusion": wrong[np.ix_(old, taken_for_old)],
        "false_new": wrong[np.ix_(old, ~taken_for_old)],
        "false_old": wrong[np.ix_(~old, taken_for_old)],
        "true_new_confusion": wrong[np.ix_(~old, ~taken_for_old)],
    }
    return {name: 100.0 * int(blocks[name].sum()) / int(matrix.sum()) for name in TERMS}
