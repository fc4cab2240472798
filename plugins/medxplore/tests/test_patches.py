"""Patch scores, Top-K, matching and the consistency loss against loops."""

from __future__ import annotations

import medxplore_loops as loops
import numpy as np
import pytest
import torch
from gcdbench_medxplore.consistency import pair_weights, patch_consistency
from gcdbench_medxplore.mutual_neighbours import candidate_similarity, mutual_matches
from gcdbench_medxplore.patches import (
    patch_count,
    patch_scores,
    patch_tokens,
    require_grid,
    require_patches,
    top_k,
)
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gcdbench.api import ConfigError


def randn(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("grid", [1, 2, 3, 6])
def test_scores_and_tokens_are_region_means(grid):
    attention, x = randn(2, 6, 6).sigmoid(), randn(2, 3, 6, 6)
    np.testing.assert_allclose(patch_scores(attention, grid).numpy(), loops.region_means(attention.numpy(), grid))
    tokens = patch_tokens(x, grid).numpy()
    for channel in range(3):
        np.testing.assert_allclose(tokens[:, :, channel], loops.region_means(x[:, channel].numpy(), grid), atol=1e-12)


def test_without_a_grid_a_patch_is_a_cell():
    attention, x = randn(2, 4, 5), randn(2, 3, 4, 5)
    assert torch.equal(patch_scores(attention), attention.reshape(2, 20))
    assert torch.equal(patch_tokens(x)[1, 7], x[1, :, 1, 2])


@given(arrays(np.float64, (3, 9), elements=st.sampled_from([0.0, 0.25, 0.5, 1.0])), st.integers(1, 9))
def test_top_k_takes_the_first_of_equals(scores, k):
    assert top_k(torch.from_numpy(scores), k).tolist() == loops.top_k(scores.tolist(), k)


def make_similarity(count, k, dim=5, size=4, seed=0):
    tokens = randn(2 * size, count, dim, seed=seed) + 1.0
    scores = randn(2 * size, count, seed=seed + 1).sigmoid()
    chosen = top_k(scores, k)
    return tokens, scores, chosen[:size], chosen[size:]


@pytest.mark.parametrize(("count", "k"), [(4, 1), (4, 4), (16, 3), (16, 8), (49, 8)])
def test_similarity_matches_and_loss_are_the_equations(count, k):
    tokens, scores, first, second = make_similarity(count, k)
    s = candidate_similarity(tokens, first, second)
    expected = loops.similarity(tokens[:4].numpy(), tokens[4:].numpy(), first.tolist(), second.tolist())
    np.testing.assert_allclose(s.numpy(), expected, atol=1e-12)
    a1, a2 = scores[:4].gather(1, first), scores[4:].gather(1, second)
    for delta in (-1.0, 0.3, 0.65, 0.9, 1.1):
        pairs = loops.mutual(expected, delta)
        mask = mutual_matches(s, delta)
        assert [sorted(map(tuple, m.nonzero().tolist())) for m in mask] == [sorted(p) for p in pairs]
        for least in (1, 2):
            loss = patch_consistency(s, mask, pair_weights(a1, a2), min_matches=least)
            wanted = loops.pc_loss(expected, pairs, a1.tolist(), a2.tolist(), 1e-6, least)
            np.testing.assert_allclose(float(loss), wanted, atol=1e-12)


def test_a_similarity_of_exactly_delta_matches():
    similarity = torch.tensor([[[0.75, 0.5], [0.25, 0.625]]])
    assert mutual_matches(similarity, 0.75).tolist() == [[[True, False], [False, False]]]
    assert mutual_matches(similarity, 0.625).tolist() == [[[True, False], [False, True]]]


@pytest.mark.parametrize(("count", "k"), [(5, 3), (14, 3)], ids=["all products", "gathered tokens"])
def test_gradient_of_the_loss_reaches_the_tokens(count, k):
    tokens, scores, first, second = make_similarity(count, k, dim=4, size=2)
    a1, a2 = scores[:2].gather(1, first), scores[2:].gather(1, second)

    def scalar(values):
        s = loops.similarity(values[:2], values[2:], first.tolist(), second.tolist())
        return loops.pc_loss(s, loops.mutual(s, 0.2), a1.tolist(), a2.tolist(), 1e-6)

    x = tokens.clone().requires_grad_()
    s = candidate_similarity(x, first, second)
    patch_consistency(s, mutual_matches(s, 0.2), pair_weights(a1, a2)).backward()
    np.testing.assert_allclose(x.grad.numpy(), loops.numeric_gradient(scalar, tokens.numpy()), atol=1e-7)


@given(arrays(np.float64, (2, 5, 5), elements=st.sampled_from([-0.5, 0.2, 0.7, 0.9])))
def test_a_patch_is_matched_at_most_once(s):
    mask = mutual_matches(torch.from_numpy(s), 0.65)
    assert mask.sum(1).max() <= 1
    assert mask.sum(2).max() <= 1
    assert [sorted(map(tuple, m.nonzero().tolist())) for m in mask] == [sorted(p) for p in loops.mutual(s, 0.65)]


def test_equal_tokens_match_the_first_pair_only():
    s = torch.ones(1, 3, 3)
    assert mutual_matches(s, 0.65).nonzero().tolist() == [[0, 0, 0]]


def test_without_matches_the_loss_is_zero_and_has_a_graph():
    tokens, scores, first, second = make_similarity(16, 8)
    tokens.requires_grad_()
    s = candidate_similarity(tokens, first, second)
    weights = pair_weights(scores[:4].gather(1, first), scores[4:].gather(1, second))
    loss = patch_consistency(s, mutual_matches(s, 1.5), weights)
    assert float(loss.detach()) == 0.0
    loss.backward()
    assert torch.equal(tokens.grad, torch.zeros_like(tokens))


@pytest.mark.parametrize("count", [3, 20])
def test_zero_tokens_are_finite(count):
    """A dead ReLU gives a token of zeros, which has no direction; both routes to the cosine must survive it."""
    tokens = torch.zeros(2, count, 4, requires_grad=True)
    index = torch.tensor([[0, 1]])
    s = candidate_similarity(tokens, index, index)
    patch_consistency(s, mutual_matches(s, -1.0), torch.ones(1, 2, 2)).backward()
    assert torch.isfinite(s).all()
    assert torch.isfinite(tokens.grad).all()


def test_k_scales_with_the_cells():
    assert [patch_count(8, n, scaled=True) for n in (1, 16, 36, 49)] == [1, 3, 6, 8]
    assert patch_count(8, 16, scaled=False) == 8


def test_more_patches_than_cells_are_refused_with_the_smallest_size():
    require_patches(16, 4, stride=32, image_size=128)
    with pytest.raises(ConfigError) as error:
        require_patches(8, 2, stride=32, image_size=64)
    assert "N = 4" in error.value.message
    assert "image_size=96" in error.value.hint
    assert "faac.k=4" in error.value.hint
    require_patches(8, 3, stride=32, image_size=96)


@pytest.mark.parametrize(
    ("k", "side", "grid", "remedy"),
    [
        (5, 4, 2, "faac.grid=4,"),  # 3 × 3 would do, but does not divide the map
        (8, 6, 2, "faac.grid=3,"),
        (10, 6, 3, "faac.grid=6,"),
        (17, 4, 2, "image_size=160 or more without faac.grid,"),  # no grid of this map has 17
    ],
)
def test_more_patches_than_a_grid_has_are_refused_with_one_that_does(k, side, grid, remedy):
    with pytest.raises(ConfigError, match=f"grid of {grid} has only N = {grid**2}") as error:
        require_patches(k, side, stride=32, image_size=32 * side, grid=grid)
    assert remedy in error.value.hint
    assert f"faac.k={grid**2}" in error.value.hint


def test_a_grid_must_divide_the_map():
    require_grid(None, 7, 7)
    require_grid(2, 4, 6)
    with pytest.raises(ConfigError, match="does not divide"):
        require_grid(3, 4, 4)
