"""CMS's shift, contrast and clusters, against loops and scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score
from torch import Tensor
from torch.nn import functional as F

from gcdbench.core.arrays import IntArray
from gcdbench.methods.algorithms.estimate_k import matched_share
from gcdbench.methods.algorithms.mean_shift import Ascent, cut, iterate, mean_shift, shifted_contrast, ward_merges


def unit(rng: np.random.Generator, rows: int, width: int = 5) -> np.ndarray:
    points = rng.normal(size=(rows, width))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))


def test_the_shift_written_out() -> None:
    rng = np.random.default_rng(0)
    points, memory = unit(rng, 6), unit(rng, 20)
    made = mean_shift(torch.from_numpy(points), torch.from_numpy(memory), k=4, alpha=0.3).numpy()
    for point, result in zip(points, made, strict=True):
        near = sorted(range(20), key=lambda j: -float(point @ memory[j]))[1:5]
        moved = 0.7 * point + 0.3 * memory[near].mean(axis=0)
        assert np.allclose(result, moved / np.linalg.norm(moved))


def test_the_length_carries_no_gradient() -> None:
    rng = np.random.default_rng(1)
    points = torch.from_numpy(unit(rng, 3)).requires_grad_()
    memory = torch.from_numpy(unit(rng, 9))
    upstream = torch.randn(3, 5, dtype=torch.float64)
    mean_shift(points, memory, k=2, alpha=0.5).backward(upstream)
    _, rows = (points.detach() @ memory.T).topk(3, dim=1)
    moved = 0.5 * points.detach() + 0.5 * memory[rows[:, 1:]].mean(dim=1)
    assert points.grad is not None
    assert torch.allclose(points.grad, 0.5 * upstream / moved.norm(dim=1, keepdim=True))


def test_a_memory_of_one_moves_nothing_and_a_small_one_gives_what_it_has() -> None:
    points = torch.eye(3, dtype=torch.float64)
    assert torch.equal(mean_shift(points, points[:1], k=8, alpha=0.5), points)
    made = mean_shift(points[:1], points[:2], k=8, alpha=0.5)
    assert made[0].tolist() == pytest.approx([math.sqrt(0.5), math.sqrt(0.5), 0.0])


@pytest.mark.parametrize("negatives_only", [True, False])
def test_the_contrast_written_out(negatives_only: bool) -> None:
    rng = np.random.default_rng(2)
    z = unit(rng, 8)
    total = 0.0
    for i in range(8):
        partner = (i + 4) % 8
        others = [j for j in range(8) if j != i and not (negatives_only and j == partner)]
        total += math.log(sum(math.exp(float(z[i] @ z[j]) / 0.25) for j in others)) - float(z[i] @ z[partner]) / 0.25
    made = shifted_contrast(torch.from_numpy(z), 0.25, negatives_only=negatives_only)
    assert float(made) == pytest.approx(total / 8)


def test_leaving_the_positive_out_can_make_the_loss_negative() -> None:
    z = F.normalize(torch.tensor([[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]), dim=1)
    assert float(shifted_contrast(z, 0.25)) < 0
    assert float(shifted_contrast(z, 0.25, negatives_only=False)) > 0


def test_a_single_image_costs_nothing() -> None:
    z = torch.ones(2, 3, requires_grad=True)
    loss = shifted_contrast(z, 0.25)
    loss.backward()  # type: ignore[no-untyped-call]
    assert float(loss.detach()) == 0.0


@pytest.mark.parametrize("k", [1, 2, 3, 7, 30])
def test_cuts_of_ward_s_tree_are_scikit_learn_s(k: int) -> None:
    points = unit(np.random.default_rng(3), 30).astype(np.float32)
    made = cut(ward_merges(points), k)
    theirs = AgglomerativeClustering(k, linkage="ward").fit_predict(points.astype(np.float64))
    assert sorted(set(made)) == list(range(k))
    assert adjusted_rand_score(made, theirs) == pytest.approx(1.0)


def test_more_clusters_than_points_and_equal_points() -> None:
    points = np.ones((4, 2), dtype=np.float32)
    assert cut(ward_merges(points), 9).tolist() == [0, 1, 2, 3]
    assert sorted(set(cut(ward_merges(points), 3))) == [0, 1, 2]


def iterate_scores(scores: list[float], patience: int = 2, max_shifts: int = 20) -> tuple[Ascent, list[Tensor]]:
    points = torch.from_numpy(unit(np.random.default_rng(4), 12))
    given = iter(scores)
    seen: list[Tensor] = []

    def group(moved: Tensor) -> IntArray:
        seen.append(moved)
        return np.full(12, len(seen) - 1)

    best = iterate(points, group, lambda _: next(given), k=3, alpha=0.5, patience=patience, max_shifts=max_shifts)
    assert torch.equal(seen[0], points)
    assert torch.equal(best.points, seen[best.shifts])
    assert best.cluster.tolist() == [best.shifts] * 12
    return best, seen


@pytest.mark.parametrize(
    ("scores", "shifts", "tried"),
    [
        ([0.2, 0.5, 0.4, 0.3, 0.9], 1, 4),  # two in a row that do not rise
        ([0.9, 0.5, 0.4, 1.0], 0, 3),  # the points as they came
        ([0.5, 0.5, 0.5, 0.9], 2, 3),  # an equal is not a rise, but the last of equals counts
        ([0.2, 0.5, 0.5, 0.6, 0.6, 0.1], 4, 6),
        ([0.5, 0.4, 0.5, 0.9], 2, 3),
    ],
)
def test_the_iteration_stops_after_its_patience_and_keeps_the_last_of_the_best(
    scores: list[float], shifts: int, tried: int
) -> None:
    best, seen = iterate_scores(scores)
    assert (best.shifts, best.score, len(seen)) == (shifts, scores[shifts], tried)


def test_a_score_that_always_rises_ends_with_the_last_shift() -> None:
    """The published loop prints 0 in this case."""
    best, seen = iterate_scores(list(range(100)), max_shifts=5)
    assert (best.score, best.shifts, len(seen)) == (5, 5, 6)


def published_loop(points: np.ndarray, labels: np.ndarray, classes: int) -> tuple[np.ndarray, int]:
    """CMS's inference written out: shift, Ward's tree cut at a height, accuracy of the labelled points, tolerance."""
    highest, tolerance, kept = 0.0, 0, (np.zeros(0), -1)
    for state in range(20):
        if state:
            moved = []
            for point in points:
                near = sorted(range(len(points)), key=lambda j: -float(point @ points[j]))[1:5]
                shifted = 0.5 * point + 0.5 * np.mean([points[j] for j in near], axis=0)
                moved.append(shifted / math.sqrt(float(shifted @ shifted)))
            points = np.array(moved)
        tree = linkage(points, method="ward")
        cluster = fcluster(tree, t=tree[:, 2][-classes], criterion="distance")
        right = np.zeros((classes + 1, classes + 1))
        for own, label in zip(cluster, labels, strict=False):
            right[own, label] += 1
        accuracy = right[linear_sum_assignment(-right)].sum() / len(labels)
        tolerance = 0 if highest < accuracy else tolerance + 1
        if highest <= accuracy:
            highest, kept = accuracy, (cluster, state)
        if tolerance >= 2:
            return kept
    return kept


@pytest.mark.parametrize("seed", range(12))
def test_the_whole_search_is_the_published_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, size=40)
    points = rng.normal(size=(4, 6))[truth] + rng.normal(scale=1.1, size=(40, 6))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    labels = truth[:14]
    best = iterate(
        torch.from_numpy(points),
        group=lambda moved: cut(ward_merges(moved.numpy()), 4),
        score=lambda cluster: matched_share(labels, cluster[:14], 4),
        k=4,
        alpha=0.5,
        patience=2,
        max_shifts=19,
    )
    cluster, shifts = published_loop(points, labels, 4)
    assert best.shifts == shifts
    assert adjusted_rand_score(best.cluster, cluster) == pytest.approx(1.0)
