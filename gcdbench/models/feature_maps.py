"""Sums over a feature map (B, C, H, W), and its cells as rows, at full speed however the map is stored in memory.

A network may keep the batch innermost (EfficientNet-Lite0's tail does on a CPU), the channels innermost, or the cells.
Results do not depend on it, but the time does: on a batch-innermost map the obvious formulas made a training step of
a method that looks at the map a quarter slower than the ones below. Authors of methods need to know none of this.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gcdbench.models.short_cuts import short_cuts_serve


def spatial_mean(x: Tensor) -> Tensor:
    """The mean over cells: (B, C, H, W) -> (B, C)."""
    if short_cuts_serve(x):
        for order in ((1, 2, 3, 0), (2, 3, 1, 0)):  # (C, H, W, B) and (H, W, C, B)
            rows = x.permute(order)
            if rows.is_contiguous():
                first = order.index(2)
                return rows.flatten(first, first + 1).mean(dim=first).t()
    return x.mean(dim=(2, 3))


def weighted_spatial_mean(x: Tensor, weights: Tensor) -> Tensor:
    """The spatial mean of X ⊙ A without building it: (B, C, H, W), (B, H, W) -> (B, C)."""
    share = weights.flatten(1) / weights[0].numel()  # (B, N)
    if _batch_innermost(x):
        columns = x.permute(1, 2, 3, 0).flatten(1, 2)  # (C, N, B)
        return _with_dense_gradient((columns * share.t().contiguous()).sum(dim=1)).t()
    return torch.bmm(share.unsqueeze(1), x.flatten(2).transpose(1, 2)).squeeze(1)


def weighted_channel_means(x: Tensor, weights: Tensor) -> Tensor:
    """mean_c X[b, c, i, j] · weights[m, c, i, j]: (B, C, H, W), (M, C, H, W) -> (M, B, H, W).

    One matrix product per cell, which reads X once for all M weightings.
    """
    height, width = x.shape[2:]
    cells = x.flatten(2).permute(2, 1, 0)  # (N, C, B)
    sums = torch.bmm(weights.flatten(2).permute(2, 0, 1), cells)  # (N, M, B)
    return sums.permute(1, 2, 0).reshape(len(weights), len(x), height, width) / x.shape[1]


def cells(x: Tensor) -> Tensor:
    """X (B, C, H, W) as (B, C, N), cells row by row and each image's numbers together in memory."""
    if _batch_innermost(x):
        # A transposition of a matrix is done in blocks, one of a 4-d tensor is not.
        return _with_dense_gradient(x.permute(1, 2, 3, 0).flatten(0, 2)).t().contiguous().view(*x.shape[:2], -1)
    return x.flatten(2)


def tokens(x: Tensor) -> Tensor:
    """X (B, C, H, W) as (B, N, C): token n is cell n of the map, row by row."""
    return cells(x).transpose(1, 2)


def _batch_innermost(x: Tensor) -> bool:
    return len(x) > 1 and x.stride(0) == 1


def _with_dense_gradient(rows: Tensor) -> Tensor:
    """Hand a gradient on in the memory order of ``rows``; what comes back through a transposition has the other one."""
    if rows.requires_grad:
        rows.register_hook(torch.Tensor.contiguous)  # type: ignore[no-untyped-call]
    return rows
