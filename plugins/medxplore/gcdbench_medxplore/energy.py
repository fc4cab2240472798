"""The energy map's local fluctuation (Eq. local_variance)."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

Border = Literal["valid", "replicate", "zeros"]


def local_variance(energy: Tensor, *, border: Border = "valid", ddof: int = 0, window: int = 3) -> Tensor:
    """Var of the 3×3 neighbourhood of every cell: (B, H, W) -> (B, H, W), never negative.

    ``border="valid"`` takes the neighbours inside the map only. ``"replicate"`` repeats the outermost cells, so that
    every cell has nine: with fewer, one bright cell is a larger share and weighs more, and corners next to it win.
    ``"zeros"`` surrounds the map with zeros, which lights up every border. The variance is formed from deviations, not
    as E[x²] − E[x]²: a map with a large mean and little contrast would lose all its digits in that difference.
    """
    shape, margin = energy.shape, window // 2
    if border == "replicate":
        energy = F.pad(energy.unsqueeze(1), (margin,) * 4, mode="replicate").squeeze(1)
        cells = F.unfold(energy.unsqueeze(1), window)
    else:
        cells = _neighbours(energy, window)
    inside = _neighbours(torch.ones_like(energy[:1]), window) if border == "valid" else torch.ones_like(cells[:1])
    count = inside.sum(dim=1, keepdim=True)
    mean = (cells * inside).sum(dim=1, keepdim=True) / count
    squares = ((cells - mean) * inside).square().sum(dim=1, keepdim=True)
    # A single valid cell has no spread; with ddof = 1 the quotient would be 0 / 0.
    return (squares / (count - ddof).clamp_min(1)).view(shape)


def _neighbours(maps: Tensor, window: int) -> Tensor:
    """(B, H, W) -> (B, window², H·W), zero outside the map."""
    return F.unfold(maps.unsqueeze(1), window, padding=window // 2)
