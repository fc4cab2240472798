"""Global-local energy contrast activation (Eq. glec_attention)."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class GLEC(nn.Module):
    """A = σ(γ · (V − μ(V)) / (Std(V) + ε)), the statistics over each whole map.

    A constant map has no contrast: A = 1/2 everywhere, with a finite gradient.
    """

    def __init__(self, *, gamma: float = 1.0, learn_gamma: bool = True, eps: float = 1e-6, ddof: int = 0) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.tensor(float(gamma)), requires_grad=learn_gamma)
        self.eps = eps
        self.ddof = ddof

    def forward(self, variance: Tensor) -> Tensor:
        """V (B, H, W) -> A (B, H, W) in (0, 1)."""
        flat = variance.flatten(1)
        deviation = flat - flat.mean(dim=1, keepdim=True)
        squares = deviation.square().sum(dim=1, keepdim=True) / max(flat.shape[1] - self.ddof, 1)
        # sqrt has an infinite slope at 0, and 0 · inf would poison the whole gradient.
        flatness = squares == 0
        std = torch.where(flatness, torch.ones_like(squares), squares).sqrt().masked_fill(flatness, 0.0)
        contrast = deviation / (std + self.eps)
        return torch.sigmoid(self.gamma * contrast).view_as(variance)
