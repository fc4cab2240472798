"""Where the wrong images went by the head: the four terms with the old classes' own clusters held fixed."""

from __future__ import annotations

from numpy.typing import ArrayLike

from gcdbench.metrics.accuracy import flags
from gcdbench.metrics.assignment import confusion, contingency, match_anchored
from gcdbench.metrics.decomposition import four_terms
from gcdbench.metrics.error_terms import BY_HEAD, HEAD_TERMS

SCORES = BY_HEAD


def error_decomposition_head(
    y_true: ArrayLike, cluster: ArrayLike, is_old: ArrayLike, anchored: bool = False
) -> dict[str, float]:
    """Each wrong sample in one of four groups, in percent of all samples, as the method's head itself sorts it.

    Let o_0 < … < o_{m-1} be the old classes and a(j) the class that cluster j stands for: a(j) = o_j for j < m, and
    for j >= m a one-to-one map h to the *new* classes that makes most samples right, a(j) = h(j), or no class where
    a cluster is left over. With t the class of a sample and j its cluster, of N samples,

    - ``head_true_old_confusion``  = 100/N · #{t old, j < m,  a(j) != t}
    - ``head_false_new``           = 100/N · #{t old, j >= m}
    - ``head_false_old``           = 100/N · #{t new, j < m}
    - ``head_true_new_confusion``  = 100/N · #{t new, j >= m, a(j) != t}

    and ``anchored_all`` + the four = 100. Under the one-to-one map of the headline a cluster that belongs to an old
    class may be given to a new class, and then the new images in it count as right; here they are false-old.
    Empty for a method whose first clusters are not tied to the old classes.

    >>> sample = [0, 1, 1, 1], [0, 0, 0, 0], [True, False]  # cluster 0 was trained as the old class 0
    >>> error_decomposition_head(*sample, anchored=True)["head_false_old"]
    75.0
    >>> from gcdbench.metrics.decomposition import error_decomposition
    >>> error_decomposition(*sample)["false_old"]  # the map gives cluster 0 to the new class
    0.0
    """
    if not anchored:
        return {}
    old = flags(is_old)
    table = contingency(y_true, cluster, old.size)
    matrix = confusion(table.counts, match_anchored(table, old))
    return dict(zip(HEAD_TERMS, four_terms(matrix, old), strict=True))
