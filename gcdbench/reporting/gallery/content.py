"""What a gallery shows, before any page: images, clusters, and which images stand for a cluster. Pure numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gcdbench.core.arrays import IntArray

Floats = NDArray[np.float32]

TYPICAL, DOUBTFUL, PAIRS = 12, 12, 4
"""Images of each kind that a cluster is shown with."""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """Images as the page needs them; arrays have one row per image.

    rows: rows of the image store; names: what people call them (paths); embedding: (N, C), not normalised.
    """

    rows: IntArray
    names: tuple[str, ...]
    embedding: Floats

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, kw_only=True)
class Discovered:
    """The unlabelled images with what was predicted for them.

    cluster: 0 .. K − 1; confidence: 0 to 1, not a number where there is none; unlike: whether an image is unlike
    everything seen.
    """

    images: Shown
    cluster: IntArray
    confidence: Floats
    unlike: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Labelled:
    """The labelled images with the index of their class."""

    images: Shown
    label: IntArray


@dataclass(frozen=True, kw_only=True)
class ClusterView:
    """One cluster: positions among the discovered images, and pairs (discovered, labelled) that look alike.

    known: the known class it is tied to, −1 for a new cluster.
    resembles: index of the known class it is most like, −1 where there is none; likeness: cosine of the mean features.
    doubtful: the least certain images of a new cluster; of a known class, the images least like its labelled ones.
    """

    number: int
    known: int
    size: int
    typical: IntArray
    doubtful: IntArray
    resembles: int
    likeness: float
    pairs: tuple[tuple[int, int], ...]
    unlike: int


def unit(rows: Floats) -> Floats:
    """Rows of length 1; a row of zeros stays."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(length > 0, length, 1.0), dtype=np.float32)


def class_means(features: Floats, label: IntArray, count: int) -> Floats:
    """(count, C) mean direction of each class, of length 1; zeros for a class without images."""
    sums = np.zeros((count, features.shape[1]), dtype=np.float64)
    np.add.at(sums, label, features)
    return unit(sums.astype(np.float32))


def first_clusters(known: int, k: int) -> tuple[int, ...]:
    """The known class of each of ``k`` clusters where the first ones are the known classes, in order."""
    return tuple(number if number < known else -1 for number in range(k))


def view_clusters(found: Discovered, labelled: Labelled, known: int, ties: Sequence[int]) -> tuple[ClusterView, ...]:
    """Every cluster that has images, with the images that stand for it.

    ties: (K,) the known class of each cluster, −1 for a new one.
    """
    features, references = unit(found.images.embedding), unit(labelled.images.embedding)
    means = class_means(references, labelled.label, known)
    return tuple(
        _view(number, tie, found, features, labelled, references, means)
        for number, tie in enumerate(ties)
        if (found.cluster == number).any()
    )


def _view(
    number: int, tie: int, found: Discovered, features: Floats, labelled: Labelled, references: Floats, means: Floats
) -> ClusterView:
    members = np.flatnonzero(found.cluster == number)
    known = tie >= 0
    own = means[tie] if known else unit(features[members].mean(axis=0, keepdims=True))[0]
    towards = features[members] @ own
    order = np.argsort(-towards, kind="stable")
    doubt = towards if known else found.confidence[members]
    likeness = means @ own if len(means) else np.zeros(0, dtype=np.float32)
    if known:  # a class resembles another one, not itself
        likeness = np.where(np.arange(len(means)) == tie, -np.inf, likeness)
    resembles = int(np.argmax(likeness)) if np.isfinite(likeness).any() else -1
    return ClusterView(
        number=number,
        known=tie,
        size=len(members),
        typical=members[order][:TYPICAL],
        doubtful=members[np.argsort(doubt, kind="stable")][:DOUBTFUL],
        resembles=resembles,
        likeness=float(likeness[resembles]) if resembles >= 0 else 0.0,
        pairs=() if known or resembles < 0 else _pairs(members, features, references, labelled.label == resembles),
        unlike=int(found.unlike[members].sum()),
    )


def _pairs(
    members: IntArray, features: Floats, references: Floats, chosen: NDArray[np.bool_]
) -> tuple[tuple[int, int], ...]:
    """The most alike pairs of a member and a labelled image; each image occurs once."""
    others = np.flatnonzero(chosen)
    if not len(others):
        return ()
    likeness = features[members] @ references[others].T
    pairs: list[tuple[int, int]] = []
    for _ in range(min(PAIRS, *likeness.shape)):
        row, column = np.unravel_index(int(np.argmax(likeness)), likeness.shape)
        pairs.append((int(members[row]), int(others[column])))
        likeness[row, :] = likeness[:, column] = -np.inf
    return tuple(pairs)


def embed_plane(features: Floats, seed: int = 0) -> Floats:
    """(N, 2) map of the features by t-SNE on cosine distances, scaled to 0..1; few images are laid out by PCA."""
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    points = unit(features)
    if len(points) < 3:
        return np.zeros((len(points), 2), dtype=np.float32)
    reduced = PCA(n_components=min(50, *points.shape), random_state=seed).fit_transform(points)
    plane = reduced[:, :2]
    if len(points) >= 10:
        perplexity = min(30.0, (len(points) - 1) / 3)
        plane = TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(reduced)
    low, high = plane.min(axis=0), plane.max(axis=0)
    return np.asarray((plane - low) / np.where(high > low, high - low, 1.0), dtype=np.float32)
