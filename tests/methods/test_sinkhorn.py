"""Sinkhorn against the published steps written out in float64, and where rows run out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gcdbench.methods.algorithms.sinkhorn import sinkhorn


def by_the_book(logits: np.ndarray, epsilon: float, iterations: int) -> np.ndarray:
    """SwAV's and UNO's steps: exponentiate, normalise the whole, then prototypes to 1/K and samples to 1/R in turns."""
    q = np.exp(logits.astype(np.float64) / epsilon).T
    q /= q.sum()
    k, r = q.shape
    for _ in range(iterations):
        q /= q.sum(axis=1, keepdims=True) * k
        q /= q.sum(axis=0, keepdims=True) * r
    return (q * r).T


@pytest.mark.parametrize(("rows", "classes"), [(12, 5), (5, 5), (3, 8), (1, 4), (20, 1)])
@pytest.mark.parametrize("iterations", [1, 3])
def test_it_follows_the_published_steps(rows: int, classes: int, iterations: int) -> None:
    logits = np.random.default_rng(rows).uniform(-1, 1, size=(rows, classes))
    made = sinkhorn(torch.from_numpy(logits), epsilon=0.05, iterations=iterations).numpy()
    assert np.allclose(made, by_the_book(logits, 0.05, iterations), atol=1e-9)
    assert np.allclose(made.sum(axis=1), 1.0)


def test_many_iterations_balance_the_columns() -> None:
    logits = torch.randn(40, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert torch.allclose(sinkhorn(logits, epsilon=0.5, iterations=500).sum(dim=0), torch.full((8,), 5.0).double())


def test_no_row_a_tiny_epsilon_and_no_gradient() -> None:
    assert sinkhorn(torch.zeros(0, 4), epsilon=0.05, iterations=3).shape == (0, 4)
    sharp = sinkhorn(torch.tensor([[1.0, -1.0], [0.5, -0.5]], requires_grad=True), epsilon=1e-4, iterations=3)
    assert torch.isfinite(sharp).all()
    assert not sharp.requires_grad
