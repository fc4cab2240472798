"""Patches of the map: tokens, attention scores and the Top-K choice (Eq. patch_scores)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gcdbench.api import ConfigError, feature_maps
from gcdbench_medxplore.config import View

REFERENCE_CELLS = 49
"""Cells of the paper's map (ResNet-18 at 224 px: 7 × 7), of which it keeps K = 8."""


def patch_scores(attention: Tensor, grid: int | None = None) -> Tensor:
    """a (B, N): mean of A (B, H, W) over each patch's region; without a grid every cell is a patch."""
    if grid is None:
        return attention.flatten(1)
    return _region_means(attention.unsqueeze(1), grid).flatten(1)


def patch_tokens(x: Tensor, grid: int | None = None) -> Tensor:
    """T (B, N, C): X (B, C, H, W) averaged over the same regions, row by row."""
    if grid is not None:
        x = _region_means(x, grid)
    return feature_maps.tokens(x)


class TokenProjection(nn.Module):
    """T (B, N, D) with D of its own: a linear map of each patch's mean, without a bias, which no cosine needs."""

    def __init__(self, channels: int, width: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(channels)
        self.weight = nn.Parameter(torch.empty(width, channels).uniform_(-bound, bound, generator=generator))

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, N, C) -> (B, N, D)."""
        return F.linear(tokens, self.weight)


def hold_view(tokens: Tensor, view: View) -> Tensor:
    """Tokens (2B, N, D), view 1 first, of which one view's carry no gradient."""
    first, second = tokens.chunk(2)
    return torch.cat([first.detach(), second] if view == "first" else [first, second.detach()])


def top_k(scores: Tensor, k: int) -> Tensor:
    """I (B, K): positions of the K highest scores, best first; among equals the first in reading order.

    A stable sort, because ``torch.topk`` leaves the order of equals open and a constant map is all equals.
    """
    return scores.detach().sort(dim=1, descending=True, stable=True).indices[:, :k]


def patch_count(k: int, cells: int, *, scaled: bool) -> int:
    """K, or with ``scaled`` the paper's share K / 49 of the available cells (3 of 16, 6 of 36, 8 of 49)."""
    return max(1, round(k * cells / REFERENCE_CELLS)) if scaled else k


def require_patches(k: int, side: int, *, stride: int, image_size: int, grid: int | None = None) -> None:
    """Refuse K > N on a map of side × side cells: clamping K silently would be another method."""
    cells = (grid or side) ** 2
    if k <= cells:
        return
    place = f"the feature map at {image_size} px" if grid is None else f"a grid of {grid}"
    if grid is not None and k <= side**2:
        finer = min(divisor for divisor in range(1, side + 1) if side % divisor == 0 and divisor**2 >= k)
        remedy = f"--set faac.grid={finer}"
    else:
        remedy = f"--set image_size={math.ceil(math.sqrt(k)) * stride} or more{' without faac.grid' if grid else ''}"
    raise ConfigError(
        f"FAAC is to choose K = {k} patches, but {place} has only N = {cells}.",
        hint=f"Use {remedy}, or lower K explicitly: --set faac.k={cells}.",
    )


def require_grid(grid: int | None, height: int, width: int) -> None:
    """Refuse a patch grid whose regions would overlap."""
    if grid is not None and (grid < 1 or height % grid or width % grid):
        raise ConfigError(
            f"A patch grid of {grid} does not divide the {height}×{width} feature map.",
            hint="Choose a divisor of the map's side for faac.grid, or leave it out: one patch per cell.",
        )


def _region_means(maps: Tensor, grid: int) -> Tensor:
    """(B, C, H, W) -> (B, C, grid, grid)."""
    return F.adaptive_avg_pool2d(maps, grid)
