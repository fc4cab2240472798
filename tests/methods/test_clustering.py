"""Constrained k-means against loops over points in float64, against scikit-learn, and where data runs out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.cluster import KMeans as SklearnKMeans

from gcdbench.core.arrays import IntArray
from gcdbench.methods.algorithms.clustering import (
    Clustering,
    Floats,
    constrained_kmeans,
    nearest_centre,
    normalise_rows,
    spread_centres,
    squared_distances,
)


def blobs(rng: np.random.Generator, sizes: list[int], spread: float = 0.3, width: int = 5) -> tuple[Floats, IntArray]:
    """Points around random centres, shuffled, with the number of the centre of each."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    centres = rng.normal(size=(len(sizes), width)) * 2
    points = centres[labels] + spread * rng.normal(size=(len(labels), width))
    order = rng.permutation(len(labels))
    return points[order].astype(np.float32), labels[order]


def lloyd_by_loops(
    labelled: NDArray[np.floating], labels: IntArray, unlabelled: NDArray[np.floating], centres: NDArray[np.floating],
    max_iter: int, tol: float,
) -> tuple[float, IntArray]:  # fmt: skip
    """One start of the published algorithm, point by point; returns the best iteration's inertia and clusters."""
    centres = centres.astype(np.float64)
    best, best_cluster = np.inf, np.zeros(len(unlabelled), dtype=np.int64)
    for _ in range(max_iter):
        cluster = np.zeros(len(unlabelled), dtype=np.int64)
        inertia = 0.0
        for i, point in enumerate(unlabelled):
            distances = [float(np.sum((point.astype(np.float64) - c) ** 2)) for c in centres]
            cluster[i] = int(np.argmin(distances))
            inertia += min(distances)
        for point, label in zip(labelled, labels, strict=True):
            inertia += float(np.sum((point.astype(np.float64) - centres[label]) ** 2))
        if inertia < best:
            best, best_cluster = inertia, cluster
        moved = centres.copy()
        for k in range(len(centres)):
            members = [p for p, c in zip(unlabelled, cluster, strict=True) if c == k]
            members += [p for p, c in zip(labelled, labels, strict=True) if c == k]
            if members:
                moved[k] = np.mean(np.asarray(members, dtype=np.float64), axis=0)
        shift = sum(float(np.sqrt(np.sum((a - b) ** 2))) for a, b in zip(moved, centres, strict=True))
        centres = moved
        if shift**2 < tol:
            break
    return best, best_cluster


def class_means(points: Floats, labels: IntArray, k_old: int) -> Floats:
    return np.stack([points[labels == c].mean(axis=0) for c in range(k_old)])


@pytest.mark.parametrize("seed", range(6))
def test_one_start_follows_the_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, truth = blobs(rng, [12, 9, 14, 7, 11], spread=0.9)
    given = (truth < 2) & (rng.random(len(truth)) < 0.5)
    labelled, labels, unlabelled = points[given], truth[given], points[~given]
    found = constrained_kmeans(
        unlabelled, 5, np.random.default_rng(7), labelled=labelled, labels=labels, k_old=2, n_init=1
    )
    means = class_means(labelled, labels, 2)
    new = spread_centres(unlabelled, means, 3, np.random.default_rng(7))
    inertia, cluster = lloyd_by_loops(labelled, labels, unlabelled, np.concatenate([means, new]), 200, 1e-4)
    assert found.inertia == pytest.approx(inertia, rel=1e-4)
    assert np.array_equal(found.cluster, cluster)


def test_without_labels_it_is_scikit_learn_s_kmeans_from_the_same_start() -> None:
    points, _ = blobs(np.random.default_rng(0), [40, 30, 50, 20], spread=1.2)
    found = constrained_kmeans(points, 4, np.random.default_rng(3), n_init=1, tol=0.0, max_iter=300)
    start = spread_centres(points, points[:0], 4, np.random.default_rng(3))
    theirs = SklearnKMeans(4, init=start, n_init=1, tol=0.0).fit(points)
    assert found.inertia == pytest.approx(theirs.inertia_, rel=1e-4)
    assert np.allclose(found.centres, theirs.cluster_centers_, atol=1e-4)


def test_many_starts_together_are_the_best_of_the_same_starts_alone() -> None:
    points, _ = blobs(np.random.default_rng(1), [15] * 6, spread=1.5)
    together = constrained_kmeans(points, 6, np.random.default_rng(0), n_init=8)
    rng = np.random.default_rng(0)
    alone = [constrained_kmeans(points, 6, rng, n_init=1) for _ in range(8)]
    assert together.inertia == pytest.approx(min(a.inertia for a in alone), rel=1e-5)


def test_memory_is_bounded_by_doing_starts_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    points, _ = blobs(np.random.default_rng(1), [15] * 4, spread=1.0)
    whole = constrained_kmeans(points, 4, np.random.default_rng(0), n_init=7)
    monkeypatch.setattr("gcdbench.methods.algorithms.clustering._CELLS", 2 * 60 * 4)
    assert constrained_kmeans(points, 4, np.random.default_rng(0), n_init=7).inertia == pytest.approx(whole.inertia)


def test_kmeans_plus_plus_draws_by_squared_distance() -> None:
    points = np.array([[0.0], [1.0], [3.0], [7.0]], dtype=np.float32)
    known = np.array([[0.0]], dtype=np.float32)
    rng = np.random.default_rng(0)
    drawn = np.concatenate([spread_centres(points, known, 1, rng)[:, 0] for _ in range(4000)])
    shares = [(drawn == value).mean() for value in (0, 1, 3, 7)]
    assert np.allclose(shares, np.array([0, 1, 9, 49]) / 59, atol=0.02)


def test_kmeans_plus_plus_never_draws_a_point_twice_while_there_are_others() -> None:
    points = np.arange(10, dtype=np.float32)[:, None]
    for seed in range(20):
        drawn = spread_centres(points, points[:0], 10, np.random.default_rng(seed))
        assert sorted(drawn[:, 0].tolist()) == list(range(10))


def test_distances_equal_the_direct_formula() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(30, 7)).astype(np.float32), rng.normal(size=(5, 7)).astype(np.float32)
    direct = ((a[:, None].astype(np.float64) - b[None]) ** 2).sum(axis=2)
    assert np.allclose(squared_distances(a, b), direct, atol=1e-5)
    assert np.array_equal(nearest_centre(a, b), direct.argmin(axis=1))


def test_a_row_of_zeros_is_left_alone() -> None:
    made = normalise_rows(np.array([[0.0, 0.0], [3.0, 4.0]], dtype=np.float32))
    assert np.allclose(made, [[0, 0], [0.6, 0.8]])


def check(found: Clustering, unlabelled: Floats, k: int) -> None:
    """What must hold whatever the data."""
    assert found.centres.shape == (k, unlabelled.shape[1])
    assert np.isfinite(found.centres).all()
    assert np.isfinite(found.inertia)
    assert found.inertia >= -1e-4
    assert np.array_equal(found.cluster, nearest_centre(unlabelled, found.centres))


def test_only_old_classes() -> None:
    points, truth = blobs(np.random.default_rng(0), [10, 10])
    found = constrained_kmeans(
        points[4:], 2, np.random.default_rng(0), labelled=points[:4], labels=truth[:4], k_old=2, n_init=3
    )
    check(found, points[4:], 2)
    assert (found.cluster == truth[4:]).mean() > 0.9


def test_more_clusters_than_points() -> None:
    points = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    found = constrained_kmeans(
        points, 9, np.random.default_rng(0), labelled=points[:1] + 5, labels=np.array([0]), k_old=1, n_init=4
    )
    check(found, points, 9)
    # Every point can have a centre of its own, so nothing but rounding is left.
    assert found.inertia == pytest.approx(0.0, abs=1e-3)


def test_all_points_the_same() -> None:
    points = np.ones((6, 3), dtype=np.float32)
    found = constrained_kmeans(
        points, 4, np.random.default_rng(0), labelled=points[:2], labels=np.array([0, 1]), k_old=2, n_init=3
    )
    check(found, points, 4)


def test_one_labelled_image_a_class_and_labelled_points_far_from_home() -> None:
    """A labelled point stays in its class even where another centre is nearer."""
    labelled = np.array([[0.0, 0.0], [10.0, 0.0], [10.1, 0.0]], dtype=np.float32)
    labels = np.array([0, 1, 0])
    unlabelled = np.array([[9.9, 0.0], [10.2, 0.0], [0.1, 0.0], [-0.1, 0.0]], dtype=np.float32)
    found = constrained_kmeans(
        unlabelled, 2, np.random.default_rng(0), labelled=labelled, labels=labels, k_old=2, n_init=1
    )
    inertia, cluster = lloyd_by_loops(labelled, labels, unlabelled, class_means(labelled, labels, 2), 200, 1e-4)
    assert found.inertia == pytest.approx(inertia)
    assert np.array_equal(found.cluster, cluster)


def test_an_old_class_without_a_label_is_placed_like_a_new_one() -> None:
    points, truth = blobs(np.random.default_rng(3), [8, 8, 8], spread=0.05)
    given = truth == 1
    found = constrained_kmeans(
        points[~given], 3, np.random.default_rng(0), labelled=points[given], labels=truth[given], k_old=2, n_init=5
    )
    check(found, points[~given], 3)
    assert found.inertia < 3.0
    assert len(np.unique(found.cluster)) == 2


def test_an_empty_cluster_is_put_to_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both new centres start far away from everything: published code would give centres that are not numbers."""
    points, _ = blobs(np.random.default_rng(5), [20, 20, 20], spread=0.05)

    def far_away(pool: Floats, known: Floats, count: int, rng: np.random.Generator) -> Floats:
        return np.full((count, pool.shape[1]), 1e3, dtype=np.float32) * np.arange(1, count + 1)[:, None]

    monkeypatch.setattr("gcdbench.methods.algorithms.clustering.spread_centres", far_away)
    found = constrained_kmeans(points, 3, np.random.default_rng(0), n_init=1)
    check(found, points, 3)
    assert len(np.unique(found.cluster)) == 3


def test_fewer_clusters_than_labelled_classes_is_refused() -> None:
    with pytest.raises(ValueError, match="1 clusters cannot hold 2"):
        constrained_kmeans(np.ones((3, 2), dtype=np.float32), 1, np.random.default_rng(0), k_old=2)


def test_results_follow_the_generator() -> None:
    points, _ = blobs(np.random.default_rng(0), [9] * 5, spread=2.0)
    first = constrained_kmeans(points, 5, np.random.default_rng(4), n_init=2)
    again = constrained_kmeans(points, 5, np.random.default_rng(4), n_init=2)
    assert first.centres.tobytes() == again.centres.tobytes()
