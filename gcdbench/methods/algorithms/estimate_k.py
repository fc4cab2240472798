"""How many classes? Two estimates that look at labels of labelled images only.

``gcd`` is GCD's search: a K at which plain k-means agrees well with the labels. Merging an old class with a new one
costs it nothing, and every split of an old class costs it much.
``granularity`` asks how tightly k-means fits the labelled images with one centre per class, and takes the smallest K at
which the unlabelled images are fitted as tightly. It needs no agreement between clusters and classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from gcdbench.core.arrays import IntArray
from gcdbench.methods.algorithms.clustering import Floats, constrained_kmeans, normalise_rows, squared_distances
from gcdbench.metrics.assignment import contingency, correct_per_class, match

DIMENSIONS = 64
"""Principal components that are clustered: enough to hold the classes, and twenty times faster."""

N_INIT = 5
MAX_K = 1000


@dataclass(frozen=True, kw_only=True)
class KEstimate:
    """An estimate and how it came about.

    trials: (K, score) in the order they were tried; target: the score that was looked for, or None for the largest.
    """

    k: int
    estimator: str
    trials: tuple[tuple[int, float], ...]
    target: float | None = None


@dataclass(frozen=True, kw_only=True)
class Sample:
    """What an estimator sees: features of length 1, moved to their principal components."""

    labelled: Floats
    labels: IntArray
    unlabelled: Floats
    k_old: int

    @property
    def max_k(self) -> int:
        """No more clusters than there are pairs of images, and never more than ``MAX_K``."""
        return max(self.k_old, min(MAX_K, (len(self.labelled) + len(self.unlabelled)) // 2))


def estimate_k(
    features_labelled: Floats,
    labels: IntArray,
    features_unlabelled: Floats,
    k_old: int,
    rng: np.random.Generator,
) -> int:
    """The estimate that methods use where the protocol keeps K secret: ``granularity``.

    features_labelled: (n, D); labels: (n,) in 0 .. k_old − 1; features_unlabelled: (m, D).
    """
    sample = prepare_sample(features_labelled, labels, features_unlabelled, k_old)
    return estimate_by_granularity(sample, rng).k


def prepare_sample(
    features_labelled: Floats, labels: IntArray, features_unlabelled: Floats, k_old: int, dimensions: int = DIMENSIONS
) -> Sample:
    """Scale every row to length 1, then rotate and cut to the largest principal components of all rows."""
    rows = normalise_rows(np.concatenate([features_labelled, features_unlabelled]))
    if rows.shape[1] > dimensions:
        centred = rows - rows.mean(axis=0)
        _, axes = np.linalg.eigh((centred.T @ centred).astype(np.float64))
        rows = np.asarray(centred @ axes[:, -dimensions:], dtype=np.float32)
    given = len(features_labelled)
    return Sample(labelled=rows[:given], labels=labels, unlabelled=rows[given:], k_old=k_old)


def estimate_by_granularity(sample: Sample, rng: np.random.Generator) -> KEstimate:
    """The smallest K whose clusters fit the unlabelled images as tightly as K_old clusters fit the labelled ones."""
    if not len(sample.unlabelled) or not len(sample.labelled):
        return KEstimate(k=sample.k_old, estimator="granularity", trials=())
    alone = constrained_kmeans(sample.labelled, sample.k_old, rng, n_init=2 * N_INIT)
    target = _per_free_point(alone.inertia / len(sample.labelled), len(sample.labelled), sample.k_old)
    trials: dict[int, float] = {}

    def fits(k: int) -> bool:
        if k not in trials:
            found = constrained_kmeans(
                sample.unlabelled,
                k,
                rng,
                labelled=sample.labelled,
                labels=sample.labels,
                k_old=sample.k_old,
                n_init=N_INIT,
            )
            distance = squared_distances(sample.unlabelled, found.centres).min(axis=1).mean(dtype=np.float64)
            trials[k] = _per_free_point(float(distance), len(sample.unlabelled) + len(sample.labelled), k)
        return trials[k] <= target

    low, high = sample.k_old - 1, sample.k_old
    while not fits(high) and high < sample.max_k:
        low, high = high, min(high + max(2, high // 2), sample.max_k)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return KEstimate(k=high, estimator="granularity", trials=tuple(trials.items()), target=target)


def _per_free_point(inertia: float, points: int, k: int) -> float:
    """Each centre absorbs one point's worth of scatter; without this, few points would seem tighter than many."""
    return inertia * points / max(points - k, 1)


def estimate_by_gcd(sample: Sample, rng: np.random.Generator) -> KEstimate:
    """GCD's search: bounded Brent over K, maximising the labelled images' accuracy under the best matching."""
    rows = np.concatenate([sample.labelled, sample.unlabelled])
    seed = int(rng.integers(2**31))
    trials: dict[int, float] = {}

    def loss(value: float) -> float:
        k = int(value)
        if k not in trials:
            # One seed for all K, as published: the search must not climb on noise.
            found = constrained_kmeans(rows, k, np.random.default_rng(seed), n_init=N_INIT)
            trials[k] = matched_share(sample.labels, found.cluster[: len(sample.labels)], sample.k_old)
        return -trials[k]

    if not len(sample.labelled) or sample.max_k <= sample.k_old:
        return KEstimate(k=sample.k_old, estimator="gcd", trials=())
    # As published, the bounds themselves are not tried, although the lower one would often score best.
    minimize_scalar(loss, bounds=(sample.k_old, sample.max_k), method="bounded")
    best = max(trials, key=lambda k: (trials[k], -k))
    return KEstimate(k=best, estimator="gcd", trials=tuple(trials.items()))


ESTIMATORS: dict[str, Callable[[Sample, np.random.Generator], KEstimate]] = {
    "gcd": estimate_by_gcd,
    "granularity": estimate_by_granularity,
}


def matched_share(labels: IntArray, cluster: IntArray, classes: int) -> float:
    """Share of samples that are right under the best one-to-one map from clusters to classes."""
    table = contingency(labels, cluster, classes)
    return float(correct_per_class(table.counts, match(table.counts)).sum() / table.total)
