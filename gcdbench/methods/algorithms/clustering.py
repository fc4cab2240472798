"""Lloyd's k-means with clamped labelled points: plain k-means, and GCD's semi-supervised one, in one place.

All starts advance together: the distances of every point to every centre of every start are one matrix product,
|x|² + |c|² − 2 x·c, and the new centres another one. No array of points × centres × dimensions exists.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from gcdbench.core.arrays import IntArray

Floats = NDArray[np.float32]

_CELLS = 20_000_000
"""Points × centres × starts that are looked at together; bounds the memory at about 80 MB per array."""


@dataclass(frozen=True, kw_only=True)
class Clustering:
    """The best clustering found.

    centres: (K, D), rows 0 .. k_old − 1 belong to the labelled classes; cluster: (N,) of the unlabelled points,
    each the nearest centre; inertia: sum of squared distances, labelled points to their own class's centre included.
    """

    centres: Floats
    cluster: IntArray
    inertia: float
    iterations: int


def normalise_rows(points: Floats) -> Floats:
    """Rows of length 1; a row of zeros stays as it is."""
    length = np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(points / np.where(length > 0, length, 1.0), dtype=np.float32)


def squared_distances(points: Floats, centres: Floats) -> Floats:
    """(N, D) and (M, D) -> (N, M); rounding below zero is cut off."""
    product: Floats = points @ centres.T
    product *= -2.0
    product += np.einsum("nd,nd->n", points, points)[:, None]
    product += np.einsum("md,md->m", centres, centres)
    np.maximum(product, 0.0, out=product)
    return product


def nearest_centre(points: Floats, centres: Floats) -> IntArray:
    """(N,) index of the nearest centre; ties go to the first."""
    return np.asarray(squared_distances(points, centres).argmin(axis=1), dtype=np.int64)


def centre_confidence(points: Floats, centres: Floats, cluster: IntArray, temperature: float) -> Floats:
    """(N,) share of ``cluster`` in the softmax of (x·c − |c|²/2) / temperature over all centres."""
    logits = points @ centres.T - (centres * centres).sum(axis=1) / 2
    confidence: Floats = softmax(logits / temperature, axis=1)[np.arange(len(points)), cluster].astype(np.float32)
    return confidence


def spread_centres(points: Floats, known: Floats, count: int, rng: np.random.Generator) -> Floats:
    """(count, D) further centres by k-means++: points drawn by their squared distance to the centres there are.

    known: (M, D) centres that exist already, M ≥ 0. Where every point lies on a centre, draws are uniform.
    """
    chosen = np.empty((count, points.shape[1]), dtype=np.float32)
    if not count:
        return chosen
    if not len(points):
        raise ValueError("there are no points to place centres on")
    nearest = np.full(len(points), np.inf)
    if len(known):
        nearest = squared_distances(points, known).min(axis=1).astype(np.float64)
    for i in range(count):
        weights = np.where(np.isfinite(nearest), nearest, 1.0)
        total = np.cumsum(weights if weights.sum() > 0 else np.ones(len(points)))
        row = min(int(np.searchsorted(total, rng.random() * total[-1], side="right")), len(points) - 1)
        chosen[i] = points[row]
        nearest = np.minimum(nearest, squared_distances(points, chosen[i : i + 1])[:, 0])
    return chosen


def constrained_kmeans(
    unlabelled: Floats,
    k: int,
    rng: np.random.Generator,
    *,
    labelled: Floats | None = None,
    labels: IntArray | None = None,
    k_old: int = 0,
    n_init: int = 10,
    max_iter: int = 200,
    tol: float = 1e-4,
) -> Clustering:
    """K-means over labelled and unlabelled points (N, D), where labelled ones never leave their class's centre.

    The centres of the labelled classes start at the class means, the others at unlabelled points (k-means++).
    A start ends when (the sum of its centres' shifts)² falls below ``tol``. Without labelled points it is k-means.
    """
    if k < k_old or k < 1:
        raise ValueError(f"{k} clusters cannot hold {k_old} labelled classes")
    fixed = _LabelledPart.of(labelled, labels, k_old, unlabelled.shape[1])
    lloyd = _Lloyd(unlabelled=unlabelled, fixed=fixed, k=k, max_iter=max_iter, tol=tol)
    # Old classes without a labelled image have no mean: they are placed like new ones.
    free = np.concatenate([np.flatnonzero(fixed.count == 0), np.arange(k_old, k)]).astype(np.int64)
    known = fixed.means()
    pool = unlabelled if len(unlabelled) or labelled is None else labelled
    starts = np.empty((n_init, k, unlabelled.shape[1]), dtype=np.float32)
    for start in starts:
        start[:k_old] = known
        start[free] = spread_centres(pool, known[fixed.count > 0], len(free), rng)
    group = max(1, _CELLS // max(1, len(unlabelled) * k))
    results = [lloyd.run(starts[i : i + group]) for i in range(0, n_init, group)]
    return min(results, key=lambda result: result.inertia)


@dataclass(frozen=True, kw_only=True)
class _LabelledPart:
    """What labelled points add, which no iteration changes: sums, counts and Σ|x|² of each old class."""

    total: NDArray[np.float64]
    count: NDArray[np.float64]
    squares: NDArray[np.float64]

    @classmethod
    def of(cls, points: Floats | None, labels: IntArray | None, k_old: int, width: int) -> _LabelledPart:
        total, count, squares = np.zeros((k_old, width)), np.zeros(k_old), np.zeros(k_old)
        if points is not None and labels is not None and len(labels):
            np.add.at(total, labels, points.astype(np.float64))
            np.add.at(count, labels, 1.0)
            np.add.at(squares, labels, np.einsum("nd,nd->n", points, points, dtype=np.float64))
        return cls(total=total, count=count, squares=squares)

    def means(self) -> Floats:
        return np.asarray(self.total / np.maximum(self.count, 1.0)[:, None], dtype=np.float32)

    def inertia(self, centres: Floats) -> NDArray[np.float64]:
        """(R,) for centres (R, K, D): Σ|x − c|² = Σ|x|² − 2 c·Σx + n|c|², class by class."""
        own = centres[:, : len(self.count)].astype(np.float64)
        cross = np.einsum("rkd,kd->r", own, self.total)
        length = np.einsum("rkd,rkd,k->r", own, own, self.count)
        return np.asarray(self.squares.sum() - 2.0 * cross + length)


@dataclass(frozen=True, kw_only=True)
class _Lloyd:
    """Lloyd's iterations for several starts at once."""

    unlabelled: Floats
    fixed: _LabelledPart
    k: int
    max_iter: int
    tol: float

    def run(self, centres: Floats) -> Clustering:
        """The best of the starts ``centres`` (R, K, D), at its best iteration."""
        best: Clustering | None = None
        for iteration in range(1, self.max_iter + 1):
            cluster, distance = self._assign(centres)
            inertia = distance.sum(axis=1, dtype=np.float64) + self.fixed.inertia(centres)
            leader = int(inertia.argmin())
            if best is None or inertia[leader] < best.inertia:
                best = Clustering(
                    centres=centres[leader].copy(),
                    cluster=cluster[leader],
                    inertia=float(inertia[leader]),
                    iterations=iteration,
                )
            moved = self._update(cluster, distance)
            shift = np.linalg.norm(moved - centres, axis=2).sum(axis=1)
            centres = moved[shift * shift >= self.tol]
            if not len(centres):
                break
        assert best is not None
        return best

    def _assign(self, centres: Floats) -> tuple[IntArray, Floats]:
        """(R, N) nearest centre of each point in each start, and its squared distance."""
        starts, k, width = centres.shape
        distance = squared_distances(self.unlabelled, centres.reshape(starts * k, width))
        distance = distance.reshape(len(self.unlabelled), starts, k)
        cluster = distance.argmin(axis=2)
        nearest = np.take_along_axis(distance, cluster[:, :, None], axis=2)[:, :, 0]
        return cluster.T.astype(np.int64), nearest.T

    def _update(self, cluster: IntArray, distance: Floats) -> Floats:
        """(R, K, D) means of the members; an empty cluster moves to the point that is worst served."""
        starts, count = cluster.shape
        member = np.zeros((starts, self.k, count), dtype=np.float32)
        np.put_along_axis(member, cluster[:, None, :], 1.0, axis=1)
        total = (member.reshape(starts * self.k, count) @ self.unlabelled).reshape(starts, self.k, -1)
        size = member.sum(axis=2)
        k_old = len(self.fixed.count)
        total[:, :k_old] += self.fixed.total.astype(np.float32)
        size[:, :k_old] += self.fixed.count.astype(np.float32)
        moved = np.asarray(total / np.maximum(size, 1.0)[:, :, None], dtype=np.float32)
        for start in np.flatnonzero((size == 0).any(axis=1)):
            empty = np.flatnonzero(size[start] == 0)
            far = np.argsort(-distance[start], kind="stable")[: len(empty)]
            # With fewer points than empty clusters, the last ones keep company with the first.
            moved[start, empty] = self.unlabelled[np.resize(far, len(empty))] if count else moved[start, :1]
        return moved
