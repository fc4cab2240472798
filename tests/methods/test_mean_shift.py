"""CMS's shift, contrast and clusters, against loops and scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score
from torch import Tensor
from torch.nn import functional as F

from gcdbench.core.arrays import IntArray
from gcdbench.methods.algorithms.mean_shift import cut, iterate, mean_shift, shifted_contrast, ward_merges


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


def test_the_iteration_stops_after_its_patience_and_keeps_the_best() -> None:
    points = torch.from_numpy(unit(np.random.default_rng(4), 12))
    scores = iter([0.2, 0.5, 0.4, 0.5, 0.9])
    seen: list[Tensor] = []

    def group(moved: Tensor) -> IntArray:
        seen.append(moved)
        return np.full(12, len(seen))

    best = iterate(points, group, lambda cluster: next(scores), k=3, alpha=0.5, patience=2, max_shifts=20)
    assert (best.score, best.shifts, len(seen)) == (0.5, 2, 4)
    assert best.cluster[0] == 2
    assert torch.equal(best.points, seen[1])


def test_a_score_that_always_rises_ends_with_the_last_shift() -> None:
    """The published loop prints 0 in this case."""
    points = torch.from_numpy(unit(np.random.default_rng(5), 6))
    rising = iter(range(1, 100))
    best = iterate(points, lambda p: np.zeros(6, int), lambda c: next(rising), k=2, alpha=0.5, patience=2, max_shifts=5)
    assert (best.score, best.shifts) == (5, 5)
