"""Nearest neighbours against all pairs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gcdbench.images.image_set import ImageSet
from gcdbench.methods.algorithms import neighbours
from gcdbench.methods.algorithms.neighbours import nearest_neighbours, rows_of


def all_pairs(queries: np.ndarray, memory: np.ndarray) -> np.ndarray:
    unit = [row / np.linalg.norm(row) for row in memory]
    return np.array([[float(q / np.linalg.norm(q) @ m) for m in unit] for q in queries])


@pytest.mark.parametrize("block", [3, 2048])
def test_neighbours_are_the_best_of_all_pairs(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(neighbours, "_BLOCK", block)
    rng = np.random.default_rng(0)
    queries, memory = rng.normal(size=(10, 4)), rng.normal(size=(7, 4))
    cosine, rows = nearest_neighbours(torch.from_numpy(queries), torch.from_numpy(memory), 3)
    pairs = all_pairs(queries, memory)
    assert np.array_equal(rows.numpy(), np.argsort(-pairs, axis=1)[:, :3])
    assert np.allclose(cosine.numpy(), -np.sort(-pairs, axis=1)[:, :3])


@pytest.mark.parametrize("block", [4, 2048])
def test_nobody_is_their_own_neighbour_unless_wanted(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(neighbours, "_BLOCK", block)
    points = torch.randn(9, 3, generator=torch.Generator().manual_seed(1))
    _, rows = nearest_neighbours(points, points, 20, exclude_self=True)
    assert rows.shape == (9, 8)
    assert not (rows == torch.arange(9)[:, None]).any()


def test_few_candidates_and_none() -> None:
    one = torch.ones(1, 3)
    assert nearest_neighbours(one, one, 4, exclude_self=True)[1].shape == (1, 0)
    assert nearest_neighbours(one[:0], one, 4)[1].shape == (0, 1)


def test_ids_are_found_in_a_view() -> None:
    images = ImageSet(ids=np.array([2, 5, 9]), store=np.zeros((10, 2, 2, 3), dtype=np.uint8))
    assert rows_of(torch.tensor([9, 2, 2]), images).tolist() == [2, 0, 0]
