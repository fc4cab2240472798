"""CMS's mean shift on the unit sphere, the contrast of shifted points, and Ward's clusters."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.cluster.hierarchy import linkage
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor
from torch.nn import functional as F

from gcdbench.core.arrays import IntArray
from gcdbench.methods.algorithms.neighbours import nearest_neighbours


def mean_shift(points: Tensor, memory: Tensor, *, k: int, alpha: float) -> Tensor:
    """(R, P) -> (R, P): (1 − α) v + α · mean of its neighbours, over its length, which carries no gradient.

    points: of length 1; memory: (M, P) of length 1, where neighbours 2 to k + 1 are looked for: the first is taken
    for the point itself. Without another point in the memory nothing moves.
    """
    _, rows = nearest_neighbours(points.detach(), memory, k + 1)
    if rows.shape[1] < 2:
        return points
    shifted = (1.0 - alpha) * points + alpha * memory[rows[:, 1:]].mean(dim=1)
    length: Tensor = shifted.detach().square().sum(dim=1, keepdim=True).sqrt()
    return shifted / length.clamp(min=1e-12)


def shifted_contrast(points: Tensor, temperature: float, *, negatives_only: bool = True) -> Tensor:
    """Mean over 2B rows of −s(i, partner) + log Σ exp s(i, j), s = ⟨z_i, z_j⟩ / t.

    The sum runs over the other images' rows; unless ``negatives_only``, over the partner as well, as in InfoNCE.
    points: (2B, P). A single image has no negatives and costs nothing.
    """
    rows = len(points)
    similarity = points @ points.T / temperature
    itself = torch.arange(rows, device=points.device)
    partner = itself.roll(rows // 2)
    positive = similarity[itself, partner]
    left_out = torch.zeros_like(similarity, dtype=torch.bool)
    left_out[itself, itself] = True
    if negatives_only:
        left_out[itself, partner] = True
    if rows <= 2:
        return positive.sum() * 0.0
    return (torch.logsumexp(similarity.masked_fill(left_out, -math.inf), dim=1) - positive).mean()


def ward_merges(points: NDArray[np.float32]) -> NDArray[np.float64]:
    """(N − 1, 4) Ward's dendrogram, lowest merge first; needs memory for N²/2 distances."""
    return np.asarray(linkage(points.astype(np.float64), method="ward"))


def cut(merges: NDArray[np.float64], k: int) -> IntArray:
    """(N,) the clusters when K are left, numbered by first appearance; at most N."""
    count = len(merges) + 1
    done = merges[: max(count - k, 0)]
    parent = count + np.arange(len(done))
    child = done[:, :2].astype(np.int64)
    source, target = child.ravel(), np.repeat(parent, 2)
    nodes = count + len(done)
    edges = coo_array((np.ones(len(source)), (source, target)), shape=(nodes, nodes))
    _, component = connected_components(edges, directed=False)
    _, first, number = np.unique(component[:count], return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number].astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Ascent:
    """The end of the iterated shift: points (N, P), their clusters (N,), the score and the number of shifts."""

    points: Tensor
    cluster: IntArray
    score: float
    shifts: int


def iterate(
    points: Tensor,
    group: Callable[[Tensor], IntArray],
    score: Callable[[IntArray], float],
    *,
    k: int,
    alpha: float,
    patience: int,
    max_shifts: int,
) -> Ascent:
    """Shift all points among themselves and regroup, until the score fails to rise ``patience`` times in a row.

    The points as they came are the first candidate. The best state counts, the last one among equals; where the
    patience is never used up, it is the best of the ``max_shifts + 1`` states.
    """
    best: Ascent | None = None
    failures = 0
    for shifts in range(max_shifts + 1):
        if shifts:
            points = F.normalize(mean_shift(points, points, k=k, alpha=alpha), dim=1)
        cluster = group(points)
        reached = score(cluster)
        failures = 0 if best is None or reached > best.score else failures + 1
        if best is None or reached >= best.score:
            best = Ascent(points=points, cluster=cluster, score=reached, shifts=shifts)
        if failures >= patience:
            break
    assert best is not None
    return best
