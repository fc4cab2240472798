"""FAAC's network part: filter, energy, local variance, activation, and the feature made of them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gcdbench.api import feature_maps
from gcdbench_medxplore.config import FAACConfig
from gcdbench_medxplore.energy import local_variance
from gcdbench_medxplore.filtering import build_filter
from gcdbench_medxplore.glec import GLEC


class FAAC(nn.Module):
    """Turns the feature map X into the attention A and the training feature; holds every weight FAAC learns."""

    def __init__(
        self, config: FAACConfig, channels: int, height: int, width: int, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.config = config
        self.filter = build_filter(
            config.filter,
            channels,
            height,
            width,
            kernel=config.kernel,
            padding=config.padding,
            init=config.init,
            cutoff=config.cutoff,
            generator=generator,
        )
        self.activation = (
            GLEC(gamma=config.gamma, learn_gamma=config.learn_gamma, eps=config.eps, ddof=config.ddof)
            if config.glec
            else None
        )

    def attention(self, x: Tensor) -> Tensor:
        """A: X (B, C, H, W) -> (B, H, W) in (0, 1)."""
        if self.activation is None:
            raise RuntimeError("without GLEC there is no attention")
        energy = self.filter.energy(x)
        out: Tensor = self.activation(local_variance(energy, border=self.config.border, ddof=self.config.ddof))
        return out

    def feature(self, x: Tensor, pooled: Tensor, attention: Tensor | None) -> Tensor:
        """The pooled X_out, (B, C); ``pooled`` is the backbone's own summary of X.

        X_out = X + X ⊙ A, so its mean is the mean of X and the attended mean. Without GLEC X_out = X_freq.
        """
        if attention is None:
            return self.filter.pooled(x)
        if not self.config.attention_gradient:
            attention = attention.detach()
        return pooled + feature_maps.weighted_spatial_mean(x, attention)
