"""Sums over a map are the same, in value and gradient, however the map is stored in memory."""

from __future__ import annotations

import pytest
import torch

from gcdbench.models.backbone import TailOutput
from gcdbench.models.feature_maps import cells, spatial_mean, tokens, weighted_channel_means, weighted_spatial_mean
from gcdbench.models.short_cuts import plain_paths


def batch_innermost(x):
    return x.permute(1, 2, 3, 0).contiguous().permute(3, 0, 1, 2)


LAYOUTS = {
    "contiguous": lambda x: x.contiguous(),
    "channels-last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "batch-innermost": batch_innermost,
    "cells-outermost": lambda x: x.permute(2, 3, 1, 0).contiguous().permute(3, 2, 0, 1),
    "strided": lambda x: torch.stack([x, x], dim=-1)[..., 0],
}
SHAPES = [(1, 3, 4, 4), (4, 3, 4, 5), (6, 5, 1, 1), (2, 1, 3, 2)]


def randn(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def check(ours, reference, x, *others):
    """Both functions on the same leaves: equal values, equal gradients for a random weighting of the result."""
    results = []
    for function in (ours, reference):
        leaves = [x.detach().clone(memory_format=torch.preserve_format).requires_grad_()]
        leaves += [other.detach().clone().requires_grad_() for other in others]
        out = function(*leaves)
        (out * randn(*out.shape, seed=9)).sum().backward()
        results.append([out.detach(), *(leaf.grad for leaf in leaves)])
    for mine, theirs in zip(*results, strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sums_do_not_depend_on_the_layout(shape, layout):
    x = LAYOUTS[layout](randn(*shape))
    batch, channels, height, width = shape
    weights = randn(2, *shape[1:], seed=1)
    check(weighted_channel_means, lambda x, w: torch.einsum("bcij,mcij->mbij", x, w) / channels, x, weights)
    check(
        weighted_spatial_mean,
        lambda x, a: torch.einsum("bcij,bij->bc", x, a) / (height * width),
        x,
        randn(batch, height, width, seed=2),
    )
    check(spatial_mean, lambda x: torch.einsum("bcij->bc", x) / (height * width), x)
    check(cells, lambda x: x.reshape(batch, channels, height * width), x)
    check(tokens, lambda x: torch.stack([x[:, :, i, j] for i in range(height) for j in range(width)], dim=1), x)
    assert torch.equal(TailOutput(map=x, pooled=x[:, :, 0, 0]).tokens, tokens(x))
    assert cells(batch_innermost(randn(*shape))).is_contiguous()
    with plain_paths():
        check(spatial_mean, lambda x: torch.einsum("bcij->bc", x) / (height * width), x)
