"""The energy map's local fluctuation (Eq. local_variance)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from gcdbench_medxplore.config import Border

WINDOW = 3


def local_variance(energy: Tensor, *, border: Border = "valid", ddof: int = 0) -> Tensor:
    """Var of the 3×3 neighbourhood of every cell: (B, H, W) -> (B, H, W), never negative.

    ``border="valid"`` takes the neighbours inside the map only. ``"replicate"`` repeats the outermost cells, so that
    every cell has nine: with fewer, one bright cell is a larger share and weighs more, and corners next to it win.
    ``"zeros"`` surrounds the map with zeros, which lights up every border. The variance is formed from deviations, not
    as E[x²] − E[x]²: a map with a large mean and little contrast would lose all its digits in that difference.
    """
    shape = energy.shape
    if border == "replicate":
        energy = F.pad(energy.unsqueeze(1), (WINDOW // 2,) * 4, mode="replicate").squeeze(1)
        cells = F.unfold(energy.unsqueeze(1), WINDOW)
    else:
        cells = _neighbours(energy)
    inside = _neighbours(torch.ones_like(energy[:1])) if border == "valid" else torch.ones_like(cells[:1])
    count = inside.sum(dim=1, keepdim=True)
    mean = (cells * inside).sum(dim=1, keepdim=True) / count
    squares = ((cells - mean) * inside).square().sum(dim=1, keepdim=True)
    # A single valid cell has no spread; with ddof = 1 the quotient would be 0 / 0.
    return (squares / (count - ddof).clamp_min(1)).view(shape)


def _neighbours(maps: Tensor) -> Tensor:
    """(B, H, W) -> (B, 9, H·W), zero outside the map."""
    return F.unfold(maps.unsqueeze(1), WINDOW, padding=WINDOW // 2)
